"""The documented path of `layers.blocks`."""

from .layers.blocks import AddNorm, DecoderBlock, EncoderBlock

__all__ = ["AddNorm", "DecoderBlock", "EncoderBlock"]
