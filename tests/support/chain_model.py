"""Makes a model that writes the text of a test: after each token of a list, the most probable one by far is the next of the list.

    python3 tests/support/chain_model.py CONVERTER TOKENIZER.json MODEL.tarn TOKEN ...
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from tensor_files import read_safetensors, write_safetensors  # noqa: E402

CONFIG = {"task": "causal_lm", "hidden_size": 16, "num_layers": 1, "num_heads": 2, "intermediate_size": 16, "hidden_act": "swiglu",
          "norm": "rmsnorm", "norm_eps": 1e-5, "norm_position": "pre", "final_norm": True, "attention_bias": False, "mlp_bias": False,
          "position_embedding": "none", "first_position": 0, "scale_embeddings": False, "tie_word_embeddings": False,
          "tokenizer": "tokenizer.json", "attention": {"system": "softmax", "max_context": 256}}
EMBEDDING, OUTPUT, FINAL_NORM = "model.embeddings.weight", "lm_head.weight", "model.norm.weight"
CERTAIN = 10  # times 4, the norm of an embedding of one entry: the other tokens have 0


def make(converter, tokenizer, model, tokens):
    """Writes the model file. `tokens`: at most 16 of the vocabulary, each once; the last one is the end token."""
    read = json.loads(pathlib.Path(tokenizer).read_text(encoding="utf-8"))
    vocabulary = read["model"]["vocab"]
    ids = [vocabulary[token] for token in tokens]
    size = 1 + max([*vocabulary.values(), *(token["id"] for token in read["added_tokens"])])
    width = CONFIG["hidden_size"]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        checkpoint = folder / "checkpoint"
        shutil.copy(tokenizer, folder / "tokenizer.json")
        (folder / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": size, "eos_token_id": ids[-1]}), encoding="utf-8")
        run(converter, "--random-weights", 1, folder / "config.json", "--write-checkpoint", "-o", checkpoint)
        weights = checkpoint / "model.safetensors"
        tensors = {key: tensor._replace(values=[0.0] * len(tensor.values)) for key, tensor in read_safetensors(weights).items()}
        tensors[FINAL_NORM] = tensors[FINAL_NORM]._replace(values=[1.0] * width)
        for i, (token, following) in enumerate(zip(ids, ids[1:])):
            tensors[EMBEDDING].values[token * width + i] = 1.0
            tensors[OUTPUT].values[following * width + i] = CERTAIN
        write_safetensors(weights, tensors)
        run(converter, checkpoint, "-o", model, "--quant", "f32")


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    make(*sys.argv[1:4], sys.argv[4:])
