"""Language models with constant memory in PyTorch: attention variants to train, and checkpoints that tarn-convert reads."""

__version__ = "0.1.0"
