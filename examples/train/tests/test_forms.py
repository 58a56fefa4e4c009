"""The chunked form of every attention variant is its recurrent form, and can be trained."""

import pytest
import torch

from tarn_train.model import LanguageModel
from variants import CASES, case, random_model

TOKENS = 150  # more than two chunks of 64, the last one short
TOLERANCE = {torch.float64: 1e-11, torch.float32: 1e-5}  # relative error of the logits


def recurrent(model, tokens):
    states, rows = None, []
    for position in range(tokens.shape[1]):
        row, states = model.step(tokens[:, position : position + 1], states, position)
        rows.append(row)
    return torch.cat(rows, 1)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_chunked_equals_recurrent(name, dtype):
    count = 128 if name.startswith(("softmax", "linformer")) else TOKENS
    tokens = torch.randint(0, 256, (2, count), generator=torch.Generator().manual_seed(2))
    model = random_model(CASES[name], 1).to(dtype)
    wanted = recurrent(model, tokens)
    assert wanted.abs().max() > 0.5
    assert (model(tokens) - wanted).norm() < TOLERANCE[dtype] * wanted.norm()


def test_a_token_is_compared_with_places_on_its_own_device(monkeypatch):
    """Where global_positions are, too. The device meta has no numbers, which decide what stays."""
    attn, row = LanguageModel(CASES["l2g_window"]).to("meta").model.layers[0].attn, torch.zeros(1, 4, 8, device="meta")

    def sees(t, i):
        assert i.device == attn.global_positions.device == row.device
        raise StopIteration

    monkeypatch.setattr(attn, "sees", sees)
    with pytest.raises(StopIteration):
        attn.recur(row, row, row, None, None)


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_finite_and_reach_every_parameter(name):
    model = random_model(CASES[name], 3).train()
    tokens = torch.randint(0, 256, (2, 100), generator=torch.Generator().manual_seed(4))
    torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.roll(-1, 1).flatten()).backward()
    for parameter, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all(), parameter
        assert weight.grad.abs().max() > 0, parameter


@pytest.mark.parametrize("name", ["rfa_gaussian_forget", "abc_exp", "gla", "deltanet", "softmax"])
@torch.no_grad()
def test_bf16_autocast_is_near_float32(name):
    model = random_model(CASES[name], 5)
    tokens = torch.randint(0, 256, (1, 100), generator=torch.Generator().manual_seed(6))
    wanted = model(tokens)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(tokens).float()
    assert not found.equal(wanted)
    assert (found - wanted).norm() < 0.05 * wanted.norm()


@pytest.mark.parametrize("config, message", [
    # tarn-convert takes these, and the runtime would compute something else than was trained.
    (case("delta_rule", nu=1, attention_normalized=True), "attention: delta_rule: no module reads attention_normalized"),
    (case("dpfp", nu=1, dpfp_variant="signed"), "no module reads dpfp_variant"),
    (case("sliding_window", window=4, mask_empty=False), "no module reads mask_empty"),
    (case("gla", gate_low_rank=True), "no module reads gate_low_rank, expected one of system, scale, den_mode, den_eps, gate_"),
    (case("rfa", feature_map="arccos"), "attention: rfa: num_features is missing"), (case("delta_rule"), "nu is missing"),
    ({**CASES["gsa"], "attention": [1, 2]}, "attention: 1 is no object"),
    # What is misspelled would be taken for another value, without a word.
    (case("rfa", feature_map="arcos", num_features=8), "rfa: feature_map is 'arcos', expected one of gaussian, arccos"),
    (case("rfa", feature_map="arccos", num_features=8, gate="forgett"), "gate is 'forgett', expected one of none, forget"),
    (case("rfa", feature_map="arccos", num_features=8, norm_eps_mode="in"), "norm_eps_mode is 'in', expected one of outside, inside"),
    (case("rfa_normfree", num_features=8, gate="forget"), "rfa_normfree: gate is 'forget', expected one of none"),
    (case("rfa_normfree", num_features=8, den_mode="none"), "den_mode is 'none', expected one of add, clamp_min, abs_clamp_min"),
    (case("t2r", num_features=8, normalize_qk="no"), "t2r: normalize_qk is 'no', expected one of True, False"),
    (case("t2r", num_features=8, den_mode="sub"), "den_mode is 'sub', expected one of none, add, clamp_min, abs_clamp_min"),
    (case("delta_rule", feature_map="elu"), "delta_rule: feature_map is 'elu', expected one of dpfp, elu_plus_one"),
    (case("deltanet", norm_eps_mode="in"), "deltanet: norm_eps_mode is 'in', expected one of outside, inside"),
    (case("gated_deltanet", gate="vector"), "gated_deltanet: gate is 'vector', expected one of softplus"),
    (case("abc_mlp", num_slots=8, activation="tanh"), "abc_mlp: activation is 'tanh', expected one of exp, relu, sigmoid"),
    (case("abc_mlp", num_slots=8, normalization="froze"), "normalization is 'froze', expected one of renorm, frozen"),
    (case("abc_mlp", num_slots=8, control_sharing="all"), "control_sharing is 'all', expected one of layer, model"),
    (case("abc_mlp", num_slots=8, mask_empty=True), "abc_mlp: mask_empty is True, expected one of False"),
])
def test_attention_that_has_no_module(config, message):
    with pytest.raises(ValueError) as error:
        LanguageModel(config)
    assert message in str(error.value)
