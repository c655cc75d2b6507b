from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from llmsim.real_engine.model.errors import BadTokenizer
from llmsim.real_engine.tokenizing import INCOMPLETE, MAX_TOKENS, Tokenizer

TEXT = "Grüße — 你好，世界 🙂🇩🇪 naïve\n\n  x = 1;\t"
SAY = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ eos_token }}{% endfor %}"


def byte_level() -> tokenizers.Tokenizer:
    """A token a byte, as GPT-2 writes bytes, and two that are special."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({sign: place for place, sign in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<s>", "</s>"])
    return tokenizer


def byte_fallback() -> tokenizers.Tokenizer:
    """Words with their leading space, and bytes where there is no word, as Llama 2 has them."""
    vocab = {f"<0x{byte:02X}>": byte for byte in range(256)} | {"▁Hello": 256, "▁world": 257, "<unk>": 258}
    tokenizer = tokenizers.Tokenizer(models.BPE(vocab, [], unk_token="<unk>", byte_fallback=True))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def of(tokenizer: tokenizers.Tokenizer, folder: Path) -> Tokenizer:
    tokenizer.save(str(folder / "tokenizer.json"))
    return Tokenizer.of_folder(folder)


def pieces(tokenizer: Tokenizer, tokens: list[int]) -> list[str]:
    stream = tokenizer.stream()
    return [*(stream.add(token) for token in tokens), stream.finish()]


def test_text_comes_back(tmp_path: Path) -> None:
    tokenizer = of(byte_level(), tmp_path)
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert tokenizer.vocab_size == 258


def test_a_stream_gives_whole_characters(tmp_path: Path) -> None:
    tokenizer = of(byte_level(), tmp_path)
    came = pieces(tokenizer, tokenizer.encode("a🙂é"))
    assert came == ["a", "", "", "", "🙂", "", "é", ""]


def test_the_pieces_of_a_stream_are_the_text(tmp_path: Path) -> None:
    tokenizer = of(byte_level(), tmp_path)
    assert "".join(pieces(tokenizer, tokenizer.encode(TEXT * 20))) == TEXT * 20


def test_bytes_that_are_no_text_come_as_the_decoder_writes_them(tmp_path: Path) -> None:
    tokenizer = of(byte_level(), tmp_path)
    draw = random.Random(0)
    for _ in range(200):
        tokens = [draw.randrange(tokenizer.vocab_size) for _ in range(3 * MAX_TOKENS)]
        assert "".join(pieces(tokenizer, tokens)) == tokenizer.decode(tokens)


def test_bytes_that_never_end_are_not_looked_back_on_for_ever(tmp_path: Path) -> None:
    tokenizer = of(byte_level(), tmp_path)
    stream = tokenizer.stream()
    (continuation,) = tokenizer.encode("é")[1:]
    given = "".join(stream.add(continuation) for _ in range(1000))
    assert len(given) > 1000 - MAX_TOKENS
    assert len(stream._tokens) <= MAX_TOKENS
    assert given + stream.finish() == 1000 * INCOMPLETE


def test_words_keep_their_spaces_and_bytes_become_characters(tmp_path: Path) -> None:
    tokenizer = of(byte_fallback(), tmp_path)
    tokens = [256, *"你好世界朋友".encode(), 257, 257]
    assert "".join(pieces(tokenizer, tokens)) == tokenizer.decode(tokens) == "Hello你好世界朋友 world world"


@pytest.mark.parametrize("place", ["chat_template.jinja", "text", "list"])
def test_a_chat_template_is_found_in_each_of_its_places(place: str, tmp_path: Path) -> None:
    config: dict[str, object] = {"eos_token": {"content": "</s>"}}
    if place == "chat_template.jinja":
        (tmp_path / place).write_text(SAY)
    elif place == "text":
        config["chat_template"] = SAY
    else:
        config["chat_template"] = [{"name": "tools", "template": ""}, {"name": "default", "template": SAY}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = of(byte_level(), tmp_path)
    assert tokenizer.has_chat_template
    tokens = tokenizer.encode_chat([{"role": "user", "content": "Hi"}])
    assert tokens == tokenizer.encode("<user>Hi</s>")
    assert tokens[-1] == 257


def test_a_folder_without_a_chat_template_says_so(tmp_path: Path) -> None:
    tokenizer = of(byte_level(), tmp_path)
    assert not tokenizer.has_chat_template
    with pytest.raises(BadTokenizer) as refusal:
        tokenizer.encode_chat([{"role": "user", "content": "Hi"}])
    assert str(refusal.value) == f"{tmp_path}: there is no chat template; give a plain prompt"


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{% for", "the chat template is not Jinja: "),
        ("{{ raise_exception('system only') }}", "the chat template says: system only"),
        ("{{ messages.append(1) }}", "the chat template says: access to attribute 'append'"),
    ],
)
def test_a_bad_chat_template_is_one_line(template: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(BadTokenizer) as refusal:
        of(byte_level(), tmp_path).encode_chat([])
    assert str(refusal.value).startswith(f"{tmp_path / 'chat_template.jinja'}: {says}")
    assert "\n" not in str(refusal.value)


def test_a_folder_without_a_tokenizer_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadTokenizer) as refusal:
        Tokenizer.of_folder(tmp_path)
    assert str(refusal.value) == f"{tmp_path}: there is no tokenizer.json, so text cannot become tokens"


def test_a_damaged_tokenizer_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"model": 3}')
    with pytest.raises(BadTokenizer) as refusal:
        Tokenizer.of_folder(tmp_path)
    assert str(refusal.value).startswith(f"{tmp_path / 'tokenizer.json'}: cannot be read as a tokenizer: ")
    assert "\n" not in str(refusal.value)
