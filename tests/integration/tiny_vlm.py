"""Vision models of a few hundred kilobytes with random weights, written as GGUF files: what they say means
nothing, but every step from the picture's bytes to the answer's is that of a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np

Kind = Literal["llava", "smolvlm", "qwen2.5-vl"]
WIDTH, HEADS, LAYERS, HIDDEN = 64, 4, 2, 96
"""Of the language model and of the eyes alike."""

SMOLVLM_CHAT = (
    "<|im_start|>{% for message in messages %}{{ message['role'] | capitalize }}"
    "{% if message['content'][0]['type'] == 'image' %}{{ ':' }}{% else %}{{ ': ' }}{% endif %}"
    "{% for line in message['content'] %}{% if line['type'] == 'text' %}{{ line['text'] }}"
    "{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
QWEN_CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is string %}"
    "{{ message['content'] }}<|im_end|>\n{% else %}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_tiny_vlm(
    folder: Path, kind: Kind, *, width: int = WIDTH, layers: int = LAYERS
) -> tuple[Path, Path]:
    """The model and its projector, in ``folder``."""
    model, projector = folder / f"tiny-{kind}.gguf", folder / f"mmproj-tiny-{kind}.gguf"
    _write_language(model, kind, width)
    _write_eyes(projector, kind, width, layers)
    return model, projector


def _weights(random: np.random.Generator, *shape: int) -> Any:
    return (random.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)


def _write_language(path: Path, kind: Kind, width: int) -> None:
    import gguf

    arch = "qwen2vl" if kind == "qwen2.5-vl" else "llama"
    words = [b"<unk>", b"<s>", b"</s>", *(f"<0x{i:02X}>".encode() for i in range(256))]
    words += [b"\xe2\x96\x81", *(bytes([i]) for i in range(33, 127))]
    types = [2, 3, 3] + [6] * 256 + [1] * (len(words) - 259)
    if kind == "smolvlm":  # it writes these between the parts of a picture
        words += [b"\n\n", b"<fake_token_around_image>", b"<global-img>"]
        types += [1, 3, 3]
    out = gguf.GGUFWriter(path, arch)
    out.add_context_length(4096)
    out.add_embedding_length(width)
    out.add_block_count(LAYERS)
    out.add_feed_forward_length(HIDDEN)
    out.add_head_count(HEADS)
    out.add_head_count_kv(HEADS)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_dimension_count(width // HEADS)
    out.add_vocab_size(len(words))
    if arch == "qwen2vl":
        half = width // HEADS // 2
        out.add_rope_dimension_sections([half // 4, half // 4, half // 2, 0])
    out.add_tokenizer_model("llama")
    out.add_token_list(words)
    out.add_token_scores([0.0] * len(words))
    out.add_token_types(types)
    out.add_bos_token_id(1)
    out.add_eos_token_id(2)
    if kind != "llava":
        out.add_chat_template(SMOLVLM_CHAT if kind == "smolvlm" else QWEN_CHAT)
    random = np.random.default_rng(1)
    # Large embeddings: an answer that differs with its prompt, instead of one token again and again.
    out.add_tensor("token_embd.weight", 20 * _weights(random, len(words), width))
    out.add_tensor("output_norm.weight", np.ones(width, np.float32))
    head = _weights(random, len(words), width)
    head[:3] = -0.0  # never the end by chance: a test that counts tokens gets them all
    out.add_tensor("output.weight", head)
    for i in range(LAYERS):
        for name, shape in {
            "attn_q": (width, width),
            "attn_k": (width, width),
            "attn_v": (width, width),
            "attn_output": (width, width),
            "ffn_gate": (HIDDEN, width),
            "ffn_up": (HIDDEN, width),
            "ffn_down": (width, HIDDEN),
        }.items():
            out.add_tensor(f"blk.{i}.{name}.weight", _weights(random, *shape))
            if arch == "qwen2vl" and name in ("attn_q", "attn_k", "attn_v"):
                out.add_tensor(f"blk.{i}.{name}.bias", np.zeros(shape[0], np.float32))
        for name in ("attn_norm", "ffn_norm"):
            out.add_tensor(f"blk.{i}.{name}.weight", np.ones(width, np.float32))
    _finish(out)


def _write_eyes(path: Path, kind: Kind, width: int, layers: int) -> None:
    import gguf

    patch, side = (14, 56) if kind == "qwen2.5-vl" else (8, 32)
    out = gguf.GGUFWriter(path, "clip")
    out.add_clip_has_vision_encoder(True)
    out.add_clip_projector_type({"llava": "mlp", "smolvlm": "idefics3"}.get(kind, "qwen2.5vl_merger"))
    out.add_vision_image_size(side)
    out.add_vision_patch_size(patch)
    out.add_vision_embedding_length(width)
    out.add_vision_feed_forward_length(HIDDEN)
    out.add_vision_projection_dim(width)
    out.add_vision_block_count(layers)
    out.add_vision_head_count(HEADS)
    out.add_vision_attention_layernorm_eps(1e-5)
    out.add_vision_image_mean([0.5] * 3)
    out.add_vision_image_std([0.5] * 3)
    out.add_vision_use_gelu(kind != "qwen2.5-vl")
    if kind == "smolvlm":
        out.add_vision_projector_scale_factor(2)
        out.add_uint32("clip.vision.preproc_image_size", 2 * side)
    if kind == "qwen2.5-vl":
        out.add_vision_use_silu(True)
        out.add_uint32("clip.vision.n_wa_pattern", 2)
    random = np.random.default_rng(2)
    merged = width if kind == "llava" else 4 * width
    shapes: dict[str, tuple[int, ...]] = {"v.patch_embd.weight": (width, 3, patch, patch)}
    if kind == "qwen2.5-vl":
        shapes |= {"v.patch_embd.weight.1": (width, 3, patch, patch)}
        shapes |= {"v.post_ln.weight": (width,)}
    else:
        places = (side // patch) ** 2 + (kind == "llava")
        shapes |= {"v.patch_embd.bias": (width,), "v.position_embd.weight": (places, width)}
        shapes |= {"v.post_ln.weight": (width,), "v.post_ln.bias": (width,)}
    if kind == "llava":
        shapes |= {"v.class_embd": (width,), "v.pre_ln.weight": (width,), "v.pre_ln.bias": (width,)}
    if kind == "smolvlm":
        shapes |= {"mm.model.fc.weight": (width, merged)}
    else:
        shapes |= {"mm.0.weight": (merged, merged), "mm.0.bias": (merged,)}
        shapes |= {"mm.2.weight": (width, merged), "mm.2.bias": (width,)}
    for i in range(layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            shapes |= {f"v.blk.{i}.{name}.weight": (width, width), f"v.blk.{i}.{name}.bias": (width,)}
        shapes |= {f"v.blk.{i}.{name}.weight": (width,) for name in ("ln1", "ln2")}
        shapes |= {f"v.blk.{i}.ffn_up.weight": (HIDDEN, width), f"v.blk.{i}.ffn_up.bias": (HIDDEN,)}
        shapes |= {f"v.blk.{i}.ffn_down.weight": (width, HIDDEN), f"v.blk.{i}.ffn_down.bias": (width,)}
        if kind == "qwen2.5-vl":
            shapes |= {f"v.blk.{i}.ffn_gate.weight": (HIDDEN, width), f"v.blk.{i}.ffn_gate.bias": (HIDDEN,)}
        else:
            shapes |= {f"v.blk.{i}.{name}.bias": (width,) for name in ("ln1", "ln2")}
    for name, shape in shapes.items():
        norm = name.endswith(("ln1.weight", "ln2.weight", "_ln.weight"))
        scale = 4 if name.startswith("mm.") else 1  # as loud as the words
        out.add_tensor(name, np.ones(shape, np.float32) if norm else scale * _weights(random, *shape))
    _finish(out)


def _finish(out: Any) -> None:
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
