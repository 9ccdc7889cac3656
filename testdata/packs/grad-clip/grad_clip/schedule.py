"""The bound at a step."""


def bound(step, start=1.0, halflife=1000, floor=0.1):
    """The norm that gradients are clipped to at this step."""
    return max(start * 0.5 ** (step / halflife), start * floor)
