#!/usr/bin/env python3
"""tinymodel.py FOLDER: writes a Llama of 2 layers with random weights, and a tokenizer, for engines that need a model.

The tokenizer knows 1,020 words, "w0" to "w1019", each one token, and splits at spaces; so text of N words is N tokens.
Nothing is downloaded, and the same folder content comes out each time. It needs torch, transformers and tokenizers.
"""

import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

CONTEXT = 2048
SPECIAL = ["<unk>", "<s>", "</s>", "<pad>"]
TEMPLATE = "{{ bos_token }}{% for m in messages %} {{ m['content'] }}{% endfor %}"

folder = sys.argv[1]
words = SPECIAL + [f"w{i}" for i in range(1020)]
tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer.decoder = decoders.WordPiece(prefix="##")
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer,
    unk_token="<unk>",
    bos_token="<s>",
    eos_token="</s>",
    pad_token="<pad>",
    model_max_length=CONTEXT,
)
fast.chat_template = TEMPLATE
fast.save_pretrained(folder)

torch.manual_seed(1)
model = LlamaForCausalLM(
    LlamaConfig(
        vocab_size=len(words),
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=3,
    )
)
model.to(torch.bfloat16).save_pretrained(folder)
