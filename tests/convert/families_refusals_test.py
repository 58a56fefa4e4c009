"""What is refused of checkpoints of published families, and the errors that say so.

    python3 tests/convert/families_refusals_test.py [-v]
"""

import os
import shutil
import unittest

from families_case import FIXTURES, TORCH, FamiliesCase


class Refusals(FamiliesCase):
    def test_files_of_torch_that_are_refused(self):
        self.refused(self.torch_folder(TORCH / "attack.pt"), "attack.pt: data.pkl: byte ", "it names posix.system", "nothing was executed")
        self.assertFalse(os.path.exists("/tmp/tarn-was-here"))
        self.refused(self.torch_folder(TORCH / "module.pt"), "tensors do not fit config.json", '"first.bias": unknown, found F32 [2] in module.pt')
        self.refused(self.torch_folder(TORCH / "script.pt"), "a TorchScript archive")
        folder = self.torch_folder(TORCH / "zip" / "pytorch_model.bin")
        (folder / "pytorch_model.bin").write_bytes((folder / "pytorch_model.bin").read_bytes()[:-1])
        self.refused(folder, "truncated; copy it again")
        shutil.copytree(TORCH / "shards", folder, dirs_exist_ok=True)
        self.refused(folder, "has both pytorch_model.bin and pytorch_model.bin.index.json")
        (folder / "pytorch_model.bin").unlink()
        (folder / "pytorch_model-00002-of-00002.bin").unlink()
        self.refused(folder, "pytorch_model-00002-of-00002.bin: cannot be opened")

    def test_fields_that_are_not_known_or_not_supported(self):
        self.refused(self.copy("llama_a", model_type="lama"), 'model_type: "lama" is not supported', "did you mean llama?")
        self.refused(self.copy("llama_a", model_type=7), "model_type: 7 is not supported")
        self.refused(self.copy("llama_a", logit_softcapping=30.0), 'unknown field "logit_softcapping"')
        self.refused(self.copy("llama_a", rope_scaling={"rope_type": "longrope"}), "rope_scaling: short_factor: a list of 4 numbers")
        self.refused(self.copy("llama_a", rope_scaling={"type": "dynamic", "factor": 2.0}), 'rope_scaling: type: "dynamic" is not')
        self.refused(self.copy("llama_a", rope_scaling={"rope_type": "llama3", "factor": 8.0}), '"low_freq_factor" is missing')
        self.refused(self.copy("llama_a", rope_parameters={"rope_type": "default", "factor": 8.0}), 'unknown field "factor"')
        self.refused(self.copy("llama_a", quantization_config={"bits": 4}), "quantization_config", "quantized already")
        self.refused(self.copy("llama_a", hidden_act="tanh"), 'hidden_act: "tanh" is not supported')
        self.refused(self.copy("llama_a", hidden_size=None), '"hidden_size" is missing')
        self.refused(self.copy("gpt2_a", activation_function="tanh"), 'activation_function: "tanh" is not supported')
        self.refused(self.copy("gpt2_a", add_cross_attention=True), "add_cross_attention: true is not supported")
        self.refused(self.copy("opt_a", word_embed_proj_dim=12), "word_embed_proj_dim: 12 is not supported, expected 24")
        self.refused(self.copy("qwen2_b", layer_types=["full_attention"]), "layer_types")
        self.refused(self.copy("gpt_neo_a", attention_types=[[["global"], 1]]), "names fewer than num_layers = 4")
        self.refused(self.copy("gpt_neo_a", attention_types=[[["global"], 5000000000]]), "attention_types")
        self.refused(self.copy("phi3_d", rope_scaling={"type": "su", "short_factor": [1, 1, 1, 0], "long_factor": [1] * 4}),
                     "short_factor: 0 is not a number above 0")
        self.refused(self.copy("roberta_a", pad_token_id=0), "pad_token_id: 0 is not supported, expected 1")
        self.refused(self.copy("qwen2_b", use_sliding_window=False), "layer_types: a layer has a window")
        self.refused(self.copy("marian_a", share_encoder_decoder_embeddings=False), "share_encoder_decoder_embeddings: false is not")
        self.refused(self.copy("olmo_a", clip_qkv=8.0), "clip_qkv: 8.0 is not supported, expected null")
        self.refused(self.copy("stablelm_a", qk_layernorm=True), "qk_layernorm: true is not supported")
        self.refused(self.copy("stablelm_a", partial_rotary_factor=0.4), "partial_rotary_factor: it turns 3 of 8 columns")
        self.refused(self.copy("gptj_a", rotary_dim=10), "rotary_dim: 10 of heads of 8")
        self.refused(self.copy("gpt_neox_a", rotary_pct=2.0), "rotary_pct: it turns 0 of 8 columns")
        self.refused(self.copy("gpt_neox_a", rope_scaling={"rope_type": "yarn", "factor": 4.0}), "where a part of a head turns")
        self.refused(self.copy("gemma3_text_a", use_bidirectional_attention=True), "use_bidirectional_attention: true")
        self.refused(self.copy("gemma3_text_a", attn_logit_softcapping=50.0), "attn_logit_softcapping: 50.0 is not supported")
        self.refused(self.copy("gpt_neox_a", rope_theta=500), "rope_theta: 500 is not supported, expected 10000.0")
        self.refused(self.copy("smollm3_a", no_rope_layers=[1, 0]), "no_rope_layers: [1,0] is not a list of num_hidden_layers = 4")
        self.refused(self.copy("smollm3_a", no_rope_layers=[1, 0, 2, 1]), "no_rope_layers: 2 is neither 0 nor 1")
        self.refused(self.copy("qwen3_a", num_key_value_heads=16777216), "num_key_value_heads: it is above")
        self.refused(self.copy("qwen3_a", num_attention_heads=16777216), "16777216 heads of 10 are too large")
        self.refused(self.copy("phi3_a", num_attention_heads=0), "num_attention_heads: 0 is outside")

    def test_what_is_not_supported_of_biases_by_distance(self):
        self.refused(self.copy("t5_a", feed_forward_proj="gated-relu"), 'feed_forward_proj: "gated-relu" is not supported')
        self.refused(self.copy("t5_b", dense_act_fn="silu"), 'dense_act_fn: "silu" is not supported, expected "gelu_new"')
        self.refused(self.copy("t5_a", relative_attention_num_buckets=31), "distance_buckets: 31 is odd",
                     "in tarn's terms")
        self.refused(self.copy("t5_a", relative_attention_max_distance=8), "distance_max: 8 is not above 8")
        self.refused(self.copy("bloom_a", apply_residual_connection_post_layernorm=True), "apply_residual_connection_post_layernorm")
        self.refused(self.copy("bloom_a", n_head=5), "n_head: 5 does not divide 24")
        self.refused(self.copy("bloom_a", n_inner=50), "n_inner: 50 is not supported, expected 96")
        name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        self.refused(self.retensor("t5_a", lambda tensors: tensors.pop(name)), "relative_attention_bi", "missing, expected [32, 3]")
        unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
        self.convert(self.retensor("t5_a", lambda tensors: tensors.update({unused: tensors[name]})))

    def test_what_is_not_supported_of_modernbert(self):
        self.refused(self.copy("modernbert_b", classifier_pooling="max"), 'classifier_pooling: "max" is not supported')
        self.refused(self.copy("modernbert_a", architectures=["ModernBertModel"]), '"ModernBertModel" is not supported')
        self.refused(self.copy("modernbert_a", architectures=None), "architectures: a list with the name")
        self.refused(self.copy("modernbert_a", hidden_activation="relu"), 'hidden_activation: "relu" is not supported in a gated MLP')
        self.refused(self.copy("modernbert_a", tie_word_embeddings=False), "tie_word_embeddings: false is not supported")

    def test_classifiers_whose_logits_have_no_softmax(self):
        for name in "bert_b", "modernbert_b":
            for problem in "multi_label_classification", "regression":
                self.refused(self.copy(name, problem_type=problem), f'problem_type: "{problem}" is not supported, expected '
                             '"single_label_classification": a softmax of such logits is no probability')
            self.convert(self.copy(name, problem_type="single_label_classification"))
        self.convert(self.copy("bert_a", problem_type="regression"))  # not read by a masked language model
        # One label: what is refused are the tensors of five.
        self.refused(self.copy("bert_b", id2label={"0": "score"}, problem_type="regression"), '"classifier.weight": found BF16 [5, 24]')

    def test_what_is_not_supported_of_longformer(self):
        self.refused(self.copy("longformer_a", attention_window=15), "attention_window: 15 is not an even number above 0")
        self.refused(self.copy("longformer_a", attention_window=[16]), "attention_window: [16] is not a list of num_hidden_layers = 2")
        self.refused(self.copy("longformer_b", attention_window=[8, 16, 0]), "attention_window: 0 is not an even number above 0")
        self.refused(self.copy("longformer_a", attention_mode="tvm"), 'attention_mode: "tvm" is not supported')
        self.refused(self.copy("longformer_a", architectures=["LongformerForQuestionAnswering"]),
                     '"LongformerForQuestionAnswering" is not supported')

    def test_what_mixers_refuse(self):
        def mamba(**changes):
            return self.copy("mamba2_c", **changes)

        self.refused(mamba(use_bias=True), '"backbone.layers.0.mixer.in_proj.bias": missing')
        self.refused(mamba(n_groups=2), "n_groups: 2 does not divide the 3 heads")
        self.refused(mamba(head_dim=5), "head_dim: 5 does not divide expand * hidden_size = 48")
        self.refused(mamba(num_heads=4), "num_heads: 4 is not expand * hidden_size / head_dim = 3")
        self.refused(mamba(time_step_limit=[0.0, "NaN"]), "time_step_limit", "a number or Infinity")
        self.refused(mamba(time_step_limit=[2.0, 1.0]), "step_max: 1.0 is below step_min")
        error = self.convert(FIXTURES / "mamba2_a", "--window", "16", status=2)
        self.assertIn("--window", error)
        self.refused(self.copy("hgrn2_a", expand_ratio=7), "expand_ratio: 7 does not divide hidden_size = 24")
        self.refused(self.copy("rwkv7_a", value_dim=[24, 48]), "value_dim: [24,48] is not supported, expected hidden_size = 24")
        self.refused(self.copy("rwkv7_a", head_dim=7), "head_dim: 7 does not divide hidden_size = 24")
        self.refused(self.copy("transformer_a", num_heads=5), "num_heads: 5 does not divide hidden_size = 24")

        def cut(tensors):
            name = "backbone.layers.0.mixer.in_proj.weight"
            tensors[name] = tensors[name]._replace(shape=(24, 24), values=list(tensors[name].values)[: 24 * 24])

        self.refused(self.retensor("mamba2_c", cut), '"backbone.layers.0.mixer.in_proj.weight": found F32 [24, 24]', "111 rows")

    def test_hybrids_that_are_refused(self):
        self.refused(self.copy("lfm2_a", layer_types=["conv", "full_attention"]), "layer_types", "num_hidden_layers = 3 types")
        self.refused(self.copy("lfm2_a", layer_types=["conv", "sliding_attention", "conv"]),
                     'layer_types: "sliding_attention" is not supported, expected "full_attention" or "conv"')
        self.refused(self.copy("lfm2_a", conv_L_cache=9), "conv_L_cache: 9 is outside 2 .. 8")
        self.refused(self.copy("lfm2_a", block_use_swiglu=False), "block_use_swiglu: false is not supported")
        self.refused(self.copy("lfm2_a", block_multiple_of=7), '"model.layers.0.feed_forward.w1.weight": found')
        self.refused(self.copy("qwen3_next_a", num_experts=8), "num_experts: layer 0 is a mixture of 8 experts")
        self.refused(self.copy("qwen3_next_c", mlp_only_layers=[0]), "num_experts: layer 1 is a mixture of 4 experts")
        self.refused(self.copy("qwen3_next_a", linear_num_value_heads=3), "3 is no multiple of linear_num_key_heads = 2")
        self.refused(self.copy("qwen3_next_a", linear_num_value_heads=16384, linear_value_head_dim=16384), "heads are too large")
        self.refused(self.copy("qwen3_next_a", hidden_act="gelu"), 'hidden_act: only "silu"')
        self.refused(self.copy("qwen3_next_a", use_sliding_window=True), "use_sliding_window: true is not supported")
        self.refused(self.copy("qwen3_5_text_a", attn_output_gate=False), "attn_output_gate: false is not supported")
        self.refused(self.copy("qwen3_5_text_a", num_experts=4), "num_experts: 4 is not supported, expected 0")
        self.refused(self.copy("qwen3_5_a", text_config=None), "text_config: an object is missing")
        self.refused(self.copy("recurrent_gemma_a", block_types=[]), "block_types: [] is not a list of types")
        self.refused(self.copy("recurrent_gemma_a", block_types=["recurrent", "mlp"]), 'block_types: "mlp" is not supported')
        self.refused(self.copy("recurrent_gemma_a", lru_width=25), "lru_width: 25 is no multiple of num_attention_heads = 3")
        self.refused(self.copy("recurrent_gemma_a", partial_rotary_factor=0.25), "partial_rotary_factor: 0.25 is not supported")
        self.refused(self.copy("recurrent_gemma_a", intermediate_size=1), "intermediate_size: half of it")
        error = self.convert(FIXTURES / "recurrent_gemma_a", "--window", "16", status=2)
        self.assertIn("--window", error)
        for changes, words in (({"mlp_multipliers": [1.0]}, "mlp_multipliers: [1.0] is not a list of 2 numbers"),
                               ({"ssm_multipliers": [1, 1, "x", 1, 1]}, 'ssm_multipliers: "x" is not a number'),
                               ({"mamba_n_heads": 5}, "mamba_n_heads: 5 does not divide the 48 columns"),
                               ({"mamba_d_head": 9}, "mamba_d_head: 9 times mamba_n_heads = 6 is not the 48 columns"),
                               ({"mamba_n_groups": 4}, "mamba_n_groups: 4 does not divide the 6 heads"),
                               ({"mamba_use_mlp": False}, "mamba_use_mlp: false is not supported"),
                               ({"attn_layer_indices": [0]}, "attn_layer_indices: [0] is not supported, expected null"),
                               ({"time_step_limit": [0.0, 0.5]}, "time_step_limit: [0.0,0.5] is not supported"),
                               ({"hidden_act": "gelu"}, 'hidden_act: only "silu"'),
                               ({"embedding_multiplier": 0}, "embedding_multiplier: 0"),
                               ({"residual_multiplier": 0.5}, 'unknown field "residual_multiplier"')):
            self.refused(self.copy("falcon_h1_a", **changes), words)
        self.refused(self.copy("granitemoehybrid_a", num_local_experts=4), "num_local_experts: every layer is a mixture of 4 experts")
        self.refused(self.copy("granitemoehybrid_a", num_local_experts=None), "every layer is a mixture of 8 experts")
        self.refused(self.copy("granitemoehybrid_a", layer_types=["mamba", "sliding_attention", "mamba"]),
                     'layer_types: "sliding_attention" is not supported, expected "full_attention" or "linear_attention"')
        self.refused(self.copy("granitemoehybrid_a", position_embedding_type="alibi"), 'position_embedding_type: "alibi" is not one of')
        self.refused(self.copy("granitemoehybrid_a", normalization_function="layernorm"), 'normalization_function: "layernorm" is not')
        self.refused(self.copy("granitemoehybrid_a", shared_intermediate_size=30), 'shared_mlp.input_linear.weight": found', "60 rows")
        self.refused(self.copy("hgrn_a", expand_ratio=2), "expand_ratio: 2.0 is not supported with use_lower_bound")
        self.refused(self.copy("hgrn_c", expand_ratio=1000), "expand_ratio: 1000.0 times hidden_size = 24 is not in 1 .. 16384")

        def cut(tensors):
            name = "model.layers.1.mamba.in_proj.bias"
            tensors[name] = tensors[name]._replace(shape=(8,), values=list(tensors[name].values)[:8])

        self.refused(self.retensor("granitemoehybrid_b", cut), 'model.layers.1.mamba.in_proj.bias": found [8], expected 132 rows')

        def drop(name):
            return lambda tensors: tensors.pop(name)

        # The name of a layer's own kind.
        for fixture, name in (("lfm2_a", "model.layers.0.conv.out_proj.weight"), ("lfm2_a", "model.layers.1.self_attn.out_proj.weight"),
                              ("qwen3_next_a", "model.layers.0.linear_attn.out_proj.weight"),
                              ("qwen3_next_a", "model.layers.3.self_attn.o_proj.weight"),
                              ("recurrent_gemma_a", "model.layers.0.temporal_block.rg_lru.recurrent_param"),
                              ("falcon_h1_a", "model.layers.1.mamba.dt_bias"), ("granitemoehybrid_b", "model.layers.1.mamba.in_proj.bias"),
                              ("falcon_h1_a", "model.layers.1.feed_forward.up_proj.weight"), ("falcon_h1_a", "model.final_layernorm.weight"),
                              ("granitemoehybrid_a", "model.layers.0.mamba.out_proj.weight"),
                              ("granitemoehybrid_a", "model.layers.1.self_attn.o_proj.weight"),
                              ("granitemoehybrid_a", "model.layers.1.shared_mlp.output_linear.weight"),
                              ("hgrn_a", "model.layers.1.attn.i_proj.weight"), ("hgrn_a", "model.lower_bounds")):
            self.refused(self.retensor(fixture, drop(name)), f'"{name}": missing')

    def test_a_config_without_its_type(self):
        self.refused(self.copy("llama_a", model_type=None), '"model_type" is missing', "architectures")
        self.refused(self.copy("llama_a", num_key_value_heads=2), "config.json, in tarn's terms: num_kv_heads: 2 does not divide")

    def test_a_tokenizer_that_does_not_say_all(self):
        folder = self.copy("roberta_a")
        for name in "vocab.json", "merges.txt":
            (folder / name).write_text("{}", encoding="utf-8")
        self.assertIn("vocab.json does not say what stands around a text", self.convert(folder))
        (folder / "source.spm").write_bytes(b"")
        self.assertIn("source.spm and target.spm are not read", self.convert(folder))

    def test_hostile_sizes(self):
        self.refused(self.copy("gpt2_a", n_layer=16777216), "n_layer: 16777216 is outside 1 .. 512")
        self.refused(self.copy("qwen2_a", num_hidden_layers=16777216), "num_hidden_layers: 16777216 is outside 1 .. 512")
        # What is behind the type of the fourth layer is not read.
        self.convert(self.copy("gpt_neo_a", attention_types=[[["global"] * 1000, 4]] * 100))
        self.refused(self.copy("llama_e", rope_theta=1.0), "rope_theta: it must be above 1")


if __name__ == "__main__":
    unittest.main()
