#!/usr/bin/env python3
"""scriptmodel.py FOLDER: writes a Llama whose answers are known, and its tokenizer, for the recordings of answers.py.

A token is a word with the space before it. The layers change nothing, so that the last token alone chooses the next one:
after " w5" comes " w6", and after a token of SCRIPTS comes what stands there. With temperature 0 that is certain, and with
temperature 1 nearly so. A grammar may forbid that one; then some token comes that the grammar allows, so single characters
are tokens too. The 16 layers only take time: about as much as reads need to be apart.

Nothing is downloaded. It needs torch, transformers, tokenizers and gguf.
"""

import string
import sys

import gguf
import numpy
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT, WIDTH, LAYERS = 256, 256, 16
END = "</s>"
SPECIAL = ["<unk>", "<s>", END, "<pad>"]
TEMPLATE = "{{ bos_token }}{% for m in messages %} {{ m['content'] }}{% endfor %}"
# llama.cpp finds out by a template how a model writes its reasoning and its tool calls.
LLAMA_TEMPLATE = (
    "{% if tools %}{{ ' ' }}{% endif %}{% for m in messages %}{% if m.role == 'assistant' %}"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}"
    "{{ m.content }}{% for t in m.tool_calls %}<tool_call>\n"
    "{{ {'name': t.function.name, 'arguments': t.function.arguments} | tojson }}\n</tool_call>{% endfor %}"
    "{% else %} {{ m.content }}{% endif %}{% endfor %}"
)
# No token may stand twice before another: it would have two successors.
SCRIPTS = [
    [" stop", " one", " two", " three", END],
    [" reason", "<think>", " first", " second", " third", "</think>", " answer", " is", " here", END],
    [" call", "<tool_call>", '\n{"name": "', "weather", '", "arguments": ', '{"city": ', '"Paris"', "}}"]
    + ["\n", "</tool_call>", END],
    [" clock", '<tool_call>\n{"name": ', '"now", "arguments": {}}', "\n</tool_call>", END],
    [" both", '<tool_call>\n{"name": "weather"', ', "arguments": {"city": "Paris"}}', "\n</tool_call>\n<tool_call>"]
    + ['\n{"name": "now"', ', "arguments": {}}', "\n</tool_call>\n", END],
    [" named", "<tool_call>"],
    [" required", "<tool_call>"],
]

words = list(dict.fromkeys(SPECIAL + [w for script in SCRIPTS for w in script] + list(string.printable[:95]) + ["\n"]))
blank = [words.index(" "), words.index("\n")]
words += [f" w{i}" for i in range(1024 - len(words))]
place = {word: i for i, word in enumerate(words)}
after = {i: i + 1 for i in range(place[" w0"], len(words) - 1)} | {len(words) - 1: place[" w0"]}
after |= {place[a]: place[b] for script in SCRIPTS for a, b in zip(script, script[1:])}

tokenizer = Tokenizer(models.WordLevel(place, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r" ?\S+"), "isolated")
tokenizer.decoder = decoders.Fuse()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer,
    unk_token="<unk>",
    bos_token="<s>",
    eos_token=END,
    pad_token="<pad>",
    model_max_length=CONTEXT,
)
fast.chat_template = TEMPLATE
fast.save_pretrained(sys.argv[1])

torch.manual_seed(1)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(words),
        hidden_size=WIDTH,
        intermediate_size=2 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=CONTEXT,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=3,
        tie_word_embeddings=False,
    )
)
with torch.no_grad():
    for layer in model.model.layers:
        layer.self_attn.o_proj.weight.zero_()
        layer.mlp.down_proj.weight.zero_()
    # Rows of signs are nearly at right angles: a row's product with itself is WIDTH, with others about its root.
    signs = torch.randint(0, 2, (len(words), WIDTH)).float() * 2 - 1
    signs[:, 0] = 1
    model.model.embed_tokens.weight.copy_(signs)
    model.lm_head.weight.zero_()
    for word, following in after.items():
        model.lm_head.weight[following] += signs[word] / 4
    model.lm_head.weight[blank, 0] -= 16  # else a grammar of JSON could go on with spaces for ever
model.to(torch.bfloat16).save_pretrained(sys.argv[1])

# The same for llama.cpp. Its tokens are taken from a text as they stand ("user-defined"), and the 256 bytes stand after them.
# It is so fast that 32 of these layers take a quarter of that time.
file = gguf.GGUFWriter(f"{sys.argv[1]}/script.gguf", "llama")
file.add_context_length(CONTEXT)
file.add_embedding_length(WIDTH)
file.add_block_count(2 * LAYERS)
file.add_feed_forward_length(2 * WIDTH)
file.add_head_count(4)
file.add_rope_dimension_count(WIDTH // 4)
file.add_layer_norm_rms_eps(1e-6)
file.add_vocab_size(len(words) + 256)
file.add_tokenizer_model("llama")
file.add_token_list(words + [f"<0x{b:02X}>" for b in range(256)])
file.add_token_scores([0.0] * (len(words) + 256))
special, plain, byte = gguf.TokenType.CONTROL, gguf.TokenType.USER_DEFINED, gguf.TokenType.BYTE
file.add_token_types([special] * len(SPECIAL) + [plain] * (len(words) - len(SPECIAL)) + [byte] * 256)
file.add_bos_token_id(1)
file.add_eos_token_id(2)
file.add_unk_token_id(0)
file.add_add_bos_token(True)
file.add_add_space_prefix(False)
file.add_chat_template(LLAMA_TEMPLATE)
state = {name: tensor.float().numpy() for name, tensor in model.state_dict().items()}
bytes_ = numpy.ones((256, WIDTH), numpy.float32)
file.add_tensor("token_embd.weight", numpy.concatenate([state["model.embed_tokens.weight"], bytes_]))
file.add_tensor("output.weight", numpy.concatenate([state["lm_head.weight"], 0 * bytes_]))
file.add_tensor("output_norm.weight", state["model.norm.weight"])
for i in range(2 * LAYERS):
    for theirs, ours in {
        "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
        "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
        "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
    }.items():  # fmt: skip
        file.add_tensor(f"blk.{i}.{theirs}.weight", state[f"model.layers.{i % LAYERS}.{ours}.weight"])
file.write_header_to_file()
file.write_kv_data_to_file()
file.write_tensors_to_file()
file.close()
