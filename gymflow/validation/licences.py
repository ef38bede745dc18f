"""Licence identifiers that data and code may be labelled with: SPDX expressions, and words for what has no licence."""

import re

from gymflow.suggest import did_you_mean

_LISTED = """0BSD AFL-3.0 AGPL-3.0 AGPL-3.0-only AGPL-3.0-or-later Apache-1.1 Apache-2.0 Artistic-2.0 BSD-1-Clause BSD-2-Clause BSD-3-Clause
    BSD-3-Clause-Clear BSD-4-Clause BSL-1.0 BUSL-1.1 C-UDA-1.0 CC-BY-1.0 CC-BY-2.0 CC-BY-2.5 CC-BY-3.0 CC-BY-4.0 CC-BY-NC-2.0 CC-BY-NC-3.0
    CC-BY-NC-4.0 CC-BY-NC-ND-4.0 CC-BY-NC-SA-2.0 CC-BY-NC-SA-3.0 CC-BY-NC-SA-4.0 CC-BY-ND-4.0 CC-BY-SA-3.0 CC-BY-SA-4.0 CC0-1.0
    CDLA-Permissive-1.0 CDLA-Permissive-2.0 CDLA-Sharing-1.0 CECILL-2.1 ECL-2.0 EPL-1.0 EPL-2.0 EUPL-1.1 EUPL-1.2 GFDL-1.3-or-later
    GPL-2.0 GPL-2.0-only GPL-2.0-or-later GPL-3.0 GPL-3.0-only GPL-3.0-or-later ISC LGPL-2.1 LGPL-2.1-only LGPL-2.1-or-later LGPL-3.0
    LGPL-3.0-only LGPL-3.0-or-later MIT MIT-0 MPL-1.1 MPL-2.0 MS-PL MulanPSL-2.0 NCSA O-UDA-1.0 ODbL-1.0 ODC-By-1.0 OFL-1.1 OSL-3.0 PDDL-1.0
    PostgreSQL PSF-2.0 Python-2.0 Unlicense UPL-1.0 WTFPL Zlib"""
SPDX = frozenset(_LISTED.split())
OTHER = frozenset({"internal", "proprietary", "unknown"})
"""For what is not published under a licence; `LicenseRef-NAME` names one that SPDX does not list."""

_JOINS = re.compile(r"\s+(?:AND|OR)\s+|\s+WITH\s+\S+|[()]")


def licence_fault(text: str) -> str | None:
    """Why a licence label is refused, or None."""
    if text in OTHER:
        return None
    parts = [part.strip() for part in _JOINS.split(text) if part and part.strip()]
    for part in parts:
        if part.removesuffix("+") not in SPDX and not part.startswith("LicenseRef-"):
            allowed = f"allowed: SPDX identifiers such as Apache-2.0, MIT, CC-BY-4.0; LicenseRef-NAME; {', '.join(sorted(OTHER))}"
            hint = did_you_mean(part, SPDX | OTHER)
            return f"{part!r} is no licence identifier; {f'{hint} ' if hint.startswith('did') else ''}{allowed}"
    return None if parts else "no licence is named"
