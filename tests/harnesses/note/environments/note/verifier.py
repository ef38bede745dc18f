from pydantic import BaseModel

from gymflow.sandboxes import archive
from gymflow.verifiers import Evidence, Verdict, Verifier


class NoteTask(BaseModel):
    expected: str


class Note(Verifier[NoteTask]):
    """The workspace holds the number in `answer.txt`."""

    needs = frozenset({"artifacts"})

    async def verify(self, task: NoteTask, evidence: Evidence) -> Verdict:
        files = archive.read(evidence.read_artifact("workspace"))
        written = files.get("answer.txt", b"").decode().strip()
        return Verdict(reward=float(written == task.expected), extracted_answer=written or None)
