"""The entry point of {{.Name}}: a harness that scores what a model answers."""


class Harness:
    """Holds the settings of one run."""

    def __init__(self, settings):
        self.settings = settings

    def score(self, task, response):
        """The reward of a response to a task, between 0 and 1."""
        reference = str(task.get("reference", "")).strip()
        return 1.0 if reference and response.strip() == reference else 0.0


def create(settings=None, **context):
    """Called by the job; returns the harness."""
    return Harness(dict(settings or {}))
