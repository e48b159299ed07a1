"""words.py CORPUS HUB: writes local/words into a hub's cache. Its tokens are the words of the corpus of which AIPerf makes prompts, so
that AIPerf and the simulated engine, for which a token is a word, count the same. AIPerf takes a tokenizer without a network only from
such a cache."""

import pathlib
import sys

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

corpus, hub = sys.argv[1:]
words = ["[UNK]", "[EOS]", "[BOS]", *sorted(set(pathlib.Path(corpus).read_text(encoding="utf-8").split()))]
tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
folder = pathlib.Path(hub, "models--local--words")
(folder / "refs").mkdir(parents=True, exist_ok=True)
(folder / "refs" / "main").write_text("0" * 40)
PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, unk_token="[UNK]", eos_token="[EOS]", bos_token="[BOS]", model_max_length=10**7
).save_pretrained(folder / "snapshots" / ("0" * 40))
