"""Hooks the clipping into the trainer's optimizer step."""

from grad_clip.schedule import bound


class Clipper:
    """Counts steps and scales gradients whose norm is above the bound of the step."""

    def __init__(self, start, halflife):
        self.start, self.halflife, self.step = start, halflife, 0

    def scale(self, norm):
        """The factor to multiply gradients of this norm by."""
        limit = bound(self.step, self.start, self.halflife)
        self.step += 1
        return 1.0 if norm <= limit else limit / norm


def install(params, **context):
    """Called by the launcher with the job's hyperparameters."""
    return Clipper(float(params.get("clip_norm", 1.0)), int(params.get("clip_halflife", 1000)))
