"""The models of lm_test.py: two or three tiny layers each, all options that a causal language model has, in pairs that differ."""

import random
import typing

BASE = dict(
    vocab_size=256, hidden_size=32, num_layers=2, num_heads=4, intermediate_size=48, hidden_act="swiglu", norm="rmsnorm",
    norm_eps=1e-5, tokenizer="bytes")
# First positions that float32 holds, but not the angles that come of them; and that 32 bits do not hold.
MILLION, BILLIONS = 999_983, 5_000_000_011


class Case(typing.NamedTuple):
    name: str
    config: dict
    dtypes: tuple = ("F32",)  # of the tensors, in turn
    shards: int = 1

    @property
    def seed(self):
        return self.name


def case(name, attention, dtypes=("F32",), shards=1, **options):
    return Case(name, {**BASE, **options, "attention": attention}, dtypes, shards)


def rfa(**options):
    return {"system": "rfa", "feature_map": "gaussian", "num_features": 16, **options}


def abc(**options):
    return {"system": "abc_mlp", "num_slots": 8, **options}


def softmax(**options):
    return {"system": "softmax", "max_context": 96, **options}


ODD = dict(hidden_size=20, head_dim=6, value_head_dim=5, intermediate_size=37, vocab_size=50, tokenizer="none")

CASES = [
    case("rfa_defaults", rfa()),
    case("rfa_gate", rfa(gate="forget"), position_embedding="sinusoidal", first_position=BILLIONS, scale_embeddings=True,
         dtypes=("BF16",)),
    case("rfa_gate_arccos_odd", rfa(feature_map="arccos", num_features=7, gate="forget", den_mode="add", den_eps=0.05),
         norm="layernorm", attention_bias=True, hidden_act="gelu", position_embedding="rope", first_position=MILLION,
         num_kv_heads=2, **ODD),
    case("rfa_arccos_post", rfa(feature_map="arccos", norm_eps_mode="inside", norm_eps=0.1, den_eps=0.5), norm="layernorm",
         norm_position="post", final_norm=False, embedding_norm=True, attention_bias=True, mlp_bias=True, hidden_act="relu",
         position_embedding="sinusoidal", scale_embeddings=True, tie_word_embeddings=False, lm_head_bias=True),
    case("rfa_raw", rfa(normalize_qk=False, den_mode="abs_clamp_min", den_eps=0.3, scale=0.7), num_heads=2, head_dim=12,
         value_head_dim=20, position_embedding="learned", max_positions=90, first_position=5, hidden_act="gelu_tanh",
         norm_position="post", dtypes=("F16",)),
    case("rfa_undivided", rfa(den_mode="none", scale=0.2), num_heads=6, num_kv_heads=3, head_dim=8, value_head_dim=4,
         hidden_act="relu", mlp_bias=True, embedding_norm=True, tie_word_embeddings=False),
    case("rfa_million", rfa(num_features=24), hidden_size=48, position_embedding="sinusoidal", first_position=MILLION,
         scale_embeddings=True),
    case("abc_exp", abc(logit_clamp=[-1.0, 1.5]), position_embedding="rope", num_kv_heads=1, hidden_act="gelu",
         mlp_bias=True, dtypes=("F16",)),
    case("abc_exp_frozen", abc(normalization="frozen", control_sharing="model"), norm="layernorm", attention_bias=True,
         position_embedding="sinusoidal", scale_embeddings=True, hidden_act="relu"),
    case("abc_relu_masked", abc(activation="relu", mask_empty=True, num_slots=24), norm_position="post", num_kv_heads=2,
         value_head_dim=12, lm_head_bias=True, final_norm=False, position_embedding="rope", first_position=MILLION),
    case("abc_relu_frozen_odd", abc(activation="relu", normalization="frozen", num_slots=5, scale=1.0), num_kv_heads=2,
         norm="layernorm", hidden_act="gelu_tanh", tie_word_embeddings=False, dtypes=("F32", "F16", "BF16"), **ODD),
    case("abc_sigmoid", abc(activation="sigmoid", control_sharing="model"), num_heads=2, head_dim=16, value_head_dim=24,
         embedding_norm=True, position_embedding="learned", max_positions=90, dtypes=("BF16",)),
    case("abc_sigmoid_frozen", abc(activation="sigmoid", normalization="frozen", logit_clamp=[-2.0, 0.5]), hidden_size=16,
         num_heads=1, norm="layernorm", norm_position="post", mlp_bias=True, hidden_act="relu"),
    case("softmax_rope_million", softmax(), num_kv_heads=2, position_embedding="rope", rope_theta=500000.0,
         first_position=MILLION),
    case("softmax_odd", softmax(scale=0.8), norm="layernorm", attention_bias=True, mlp_bias=True, lm_head_bias=True,
         hidden_act="gelu", position_embedding="sinusoidal", first_position=2, **ODD),
    case("linear_transformer", dict(system="linear_transformer"), num_kv_heads=2, position_embedding="sinusoidal",
         scale_embeddings=True),
    case("delta_rule_odd", dict(system="delta_rule", nu=2, beta_scale=1.5), norm="layernorm", attention_bias=True,
         hidden_act="gelu", num_kv_heads=2, dtypes=("BF16", "F32"), **ODD),
    case("deltanet_gla", [dict(system="deltanet"), dict(system="gla", gate_normalizer=2)], num_kv_heads=2,
         position_embedding="rope"),
    case("gated_deltanet", dict(system="gated_deltanet", beta_scale=2.0), num_kv_heads=2, value_head_dim=12,
         position_embedding="rope", dtypes=("F32", "BF16")),
    case("rfa_normfree_t2r", [dict(system="rfa_normfree", num_features=10, den_eps=0.3),
                              dict(system="t2r", num_features=9, den_eps=0.5)], num_kv_heads=2, value_head_dim=6,
         attention_bias=True, norm="layernorm", position_embedding="sinusoidal", dtypes=("F32", "F16")),
    case("retnet_luna", [dict(system="retnet"), dict(system="luna_causal", num_slots=7)], value_head_dim=12,
         position_embedding="rope"),
    case("gsa_abc_rd", [dict(system="gsa", num_slots=6), dict(system="abc_rd", num_slots=5, seed=(1 << 63) + 5)], num_heads=2,
         attention_bias=True, position_embedding="rope", dtypes=("F16",)),
    case("windows", [dict(system="sliding_window", window=9),
                     dict(system="strided_window", window=5, stride=4, num_strided=6)], num_kv_heads=1,
         position_embedding="rope", first_position=MILLION, lm_head_bias=True),
    case("compressive_transformer", dict(system="compressive_transformer", segment_len=5, mem_len=7, cmem_len=4,
                                         compression_ratio=3), hidden_size=20, num_heads=2, num_kv_heads=1,
         position_embedding="sinusoidal", norm_position="post"),
    case("compressive_conv", [dict(system="compressive_transformer", segment_len=5, mem_len=7, cmem_len=4, compression_ratio=3,
                                   compression="conv"),
                              dict(system="compressive_transformer", segment_len=7, mem_len=5, cmem_len=3, compression_ratio=4,
                                   compression="conv", pad="left_remainder")], hidden_size=20, num_heads=2, num_kv_heads=1,
         value_head_dim=7, position_embedding="sinusoidal", attention_bias=True),
    case("own_values", [dict(system="linformer", num_slots=6, max_len=90, own_value_control=True),
                        abc(control_sharing="model", own_value_control=True), abc(own_value_control=True, activation="relu",
                                                                                 control_sharing="model", mask_empty=True)],
         num_layers=3, num_kv_heads=2, value_head_dim=5, norm="layernorm", dtypes=("F32", "BF16")),
    case("control_of_heads", [abc(control_input="heads", own_value_control=True, num_slots=5),
                              abc(control_input="heads", num_slots=7, logit_clamp=[-2.0, 1.0])], num_kv_heads=2, value_head_dim=11,
         position_embedding="rope", attention_bias=True),
    case("memory_compressed", dict(system="memory_compressed", compression_factor=3, max_context=90), hidden_size=20, head_dim=6,
         num_kv_heads=2, attention_bias=True, position_embedding="rope", hidden_act="relu"),
    case("bias_of_q_and_v", [rfa(gate="forget"), softmax()], attention_bias=["v", "q"], num_kv_heads=2,
         position_embedding="rope", dtypes=("F32", "F16")),
    case("learned_and_rope", [rfa(), softmax()], position_embedding=["learned", "rope"], max_positions=90, first_position=5,
         embedding_norm=True),
    case("rope_and_sinusoidal", abc(), position_embedding=["rope", "sinusoidal"], first_position=MILLION, num_kv_heads=2),
    case("biases_of_logits", [rfa(gate="forget", gate_bias=False), dict(system="gla", gate_bias=True),
                              dict(system="gated_deltanet", gate_bias=False, beta_bias=True), dict(system="gsa", num_slots=5,
                              gate_bias=True), abc(control_bias=True, control_sharing="model")], num_layers=5, num_kv_heads=2),
    case("hybrid", [rfa(gate="forget"), softmax(), abc(activation="relu", num_slots=2, mask_empty=True)], num_layers=3,
         num_kv_heads=2, position_embedding="rope", dtypes=("F32", "BF16"), shards=2),
    case("hybrid_shared", [abc(control_sharing="model"), rfa(feature_map="arccos"), abc(control_sharing="model"),
                           abc(num_slots=3)], num_layers=4, hidden_size=16, num_heads=2, norm="layernorm",
         tie_word_embeddings=False, shards=3),
]


def random_case(seed):
    """Any combination of options. Guards of denominators are large enough to hold float32 against float64 behind them."""
    generator = random.Random(seed)
    pick, maybe = generator.choice, lambda p=0.5: generator.random() < p
    kv_heads = pick([1, 2, 3])
    options = dict(
        num_heads=kv_heads * pick([1, 2, 3]), num_kv_heads=kv_heads,
        head_dim=2 * generator.randint(1, 9), value_head_dim=generator.randint(1, 18),
        hidden_size=2 * generator.randint(4, 20), intermediate_size=generator.randint(1, 60), num_layers=generator.randint(1, 3),
        hidden_act=pick(["swiglu", "relu", "gelu", "gelu_tanh"]), norm=pick(["rmsnorm", "layernorm"]),
        norm_eps=pick([1e-6, 1e-5, 1e-3]), norm_position=pick(["pre", "post"]),
        position_embedding=pick(["none", "sinusoidal", "learned", "rope"]), max_positions=96,
        rope_theta=pick([10000.0, 500000.0]))
    options.update(pick([dict(vocab_size=256, tokenizer="bytes"), dict(vocab_size=67, tokenizer="none")]))
    for flag in ("final_norm", "embedding_norm", "attention_bias", "mlp_bias", "lm_head_bias", "scale_embeddings",
                 "tie_word_embeddings"):
        options[flag] = maybe()
    learned = options["position_embedding"] == "learned"
    options["first_position"] = generator.randint(0, 20) if learned else pick([0, 3, MILLION, BILLIONS])

    def attention():
        system = pick([rfa, abc, softmax])
        if system is softmax:
            return softmax(**dict(scale=0.6) if maybe() else {})
        if system is rfa:
            kind = pick(["gaussian", "arccos"])
            den_mode = pick(["none", "clamp_min", "abs_clamp_min"] + ["add"] * (kind == "arccos"))
            return rfa(feature_map=kind, num_features=generator.randint(1, 20), gate=pick(["none", "forget"]),
                       normalize_qk=maybe(0.8), norm_eps=pick([1e-3, 0.1]), norm_eps_mode=pick(["outside", "inside"]),
                       den_mode=den_mode, den_eps=pick([0.1, 0.5]), scale=0.05 if den_mode == "none" else pick([1.0, 0.7]))
        return abc(num_slots=generator.randint(1, 20), activation=pick(["exp", "relu", "sigmoid"]),
                   normalization=pick(["renorm", "frozen"]), logit_clamp=pick([None, [-1.0, 1.5]]), mask_empty=maybe())

    layers = [attention() for _ in range(options["num_layers"])]
    for layer in layers:
        if layer["system"] == "abc_mlp" and maybe():
            layer.update(control_sharing="model", num_slots=7)
    dtypes = pick([("F32",), ("F16",), ("BF16",), ("F32", "F16", "BF16")])
    return case(f"random_{seed}", layers if maybe(0.7) else layers[0], dtypes=dtypes, shards=pick([1, 2]), **options)
