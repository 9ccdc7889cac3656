"""The entry point of {{.Name}}."""


def install(params, **context):
    """Called once before training starts, with the job's hyperparameters.

    Hook into the trainer here. Modules of this package are imported by their full name, {{.Module}}.<module>, because
    the pack's root joins sys.path.
    """
    strength = float(params.get("{{.Module}}_strength", 1.0))
    return {"strength": strength}
