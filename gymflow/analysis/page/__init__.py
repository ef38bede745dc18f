"""The page of a run: one HTML file that needs nothing else, with everything that is known of the run and every trajectory.

    path = await write_page(Store("gymflow-store"), run_id)

What a model, a dataset or an endpoint wrote is text in it, never markup: `markup` escapes every string, trajectories lie packed
beside the document and are put into it as text, and the page's policy runs no script but its own and reaches no network.
"""

from gymflow.analysis.page.writing import write_page

__all__ = ["write_page"]
