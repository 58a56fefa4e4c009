"""Attention objects by short names, and the positions that go with them."""


def rfa(features, **more):
    return {"system": "rfa", "feature_map": "gaussian", "num_features": features, **more}


# name -> (attention object for heads of size d and windows of so many tokens, position_embedding)
ATTENTIONS = {
    "softmax": (lambda d, context: {"system": "softmax", "max_context": context}, "rope"),
    "window": (lambda d, context: {"system": "sliding_window", "window": max(context // 4, 1)}, "rope"),
    "rfa": (lambda d, context: rfa(d), "rope"),
    "rfa_gate": (lambda d, context: rfa(d, gate="forget"), "none"),
    "rfa_arccos_gate": (lambda d, context: {**rfa(d, gate="forget"), "feature_map": "arccos"}, "none"),
    "t2r": (lambda d, context: {"system": "t2r", "num_features": d}, "rope"),
    "abc": (lambda d, context: {"system": "abc_mlp", "num_slots": d}, "rope"),
    "abc_gate": (lambda d, context: {"system": "gsa", "num_slots": d}, "none"),
    "gla": (lambda d, context: {"system": "gla"}, "none"),
    "retnet": (lambda d, context: {"system": "retnet"}, "rope"),
    "delta_rule": (lambda d, context: {"system": "delta_rule", "nu": 1}, "none"),
    "deltanet": (lambda d, context: {"system": "deltanet"}, "none"),
    "gated_deltanet": (lambda d, context: {"system": "gated_deltanet"}, "none"),
}

LOCAL, LOCAL_WINDOW = "local", 16


def local(layers, d):
    """Attention objects of a small model that sees the last tokens in their order, and the rest of the text in an RFA state"""
    return [{"system": "sliding_window", "window": LOCAL_WINDOW}, *[rfa(d, gate="forget")] * (layers - 1)]


def choose(attention, d, context):
    """The attention object or list of a config.json, and position_embedding"""
    if isinstance(attention, str):
        make, positions = ATTENTIONS[attention]
        return make(d, context), positions
    return attention, "none"
