"""A host who has a number in mind and answers guesses."""

import re

from gymflow.environments import Observation, Session


class Host(Session):
    """Ends with reward 1 at the right guess; without one, with 0 and truncated, when the guesses are used up."""

    async def start(self) -> Observation:
        self.left: int = self.parameters["guesses"]
        low, high = self.task.verifier_fields["low"], self.task.verifier_fields["high"]
        return _says(
            f"I have a number from {low} to {high} in mind. You have {self.left} guesses; say one number each time."
        )

    async def respond(self, message: str) -> Observation | None:
        secret = self.task.verifier_fields["secret"]
        numbers = re.findall(r"-?\d+", message)
        self.left -= 1
        if len(numbers) == 1 and int(numbers[0]) == secret:
            return Observation(reward=1.0, done=True)
        if self.left == 0:
            return Observation(reward=0.0, truncated=True)
        if len(numbers) != 1:
            return _says(f"Say one number. {self.left} guesses left.")
        return _says(f"{'Higher' if int(numbers[0]) < secret else 'Lower'}. {self.left} guesses left.")


def _says(text: str) -> Observation:
    return Observation(messages=[{"role": "user", "content": text}])
