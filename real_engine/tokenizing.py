"""Text to tokens and back, by the tokenizer.json in a model's folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import tokenizers

from .chat_template import ChatTemplate
from .model.errors import BadTokenizer

INCOMPLETE = "\ufffd"
"""What the decoder writes for bytes that are no character, or not yet."""

MAX_TOKENS = 64
"""That a stream looks back on: more come without a whole character only where there is none."""


class Tokenizer:
    """A model's tokenizer, with its chat template if it has one."""

    def __init__(self, tokenizer: tokenizers.Tokenizer, chat_template: ChatTemplate | None, folder: Path) -> None:
        self._tokenizer = tokenizer
        self._chat_template = chat_template
        self._folder = folder

    @classmethod
    def of_folder(cls, folder: Path) -> Tokenizer:
        """The folder's. Raises BadTokenizer where there is none or it cannot be read."""
        path = folder / "tokenizer.json"
        if not path.exists():
            raise BadTokenizer(f"{folder}: there is no tokenizer.json, so text cannot become tokens")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # The library raises bare Exceptions.
            raise BadTokenizer(f"{path}: cannot be read as a tokenizer: {error}") from None
        return cls(tokenizer, ChatTemplate.of_folder(folder), folder)

    @property
    def has_chat_template(self) -> bool:
        """Whether `encode_chat` works."""
        return self._chat_template is not None

    @property
    def vocab_size(self) -> int:
        """Tokens, the added ones included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, with those that the model wants around it."""
        return self._tokenizer.encode(text).ids

    def encode_chat(self, messages: Sequence[Mapping[str, str]]) -> list[int]:
        """The tokens of a conversation (`role` and `content` each) up to the answer.

        Raises BadTokenizer without a chat template, and where it refuses the messages.
        """
        if self._chat_template is None:
            raise BadTokenizer(f"{self._folder}: there is no chat template; give a plain prompt")
        text = self._chat_template.render(messages)
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def decode(self, tokens: Sequence[int]) -> str:
        """Their text, without special tokens."""
        return self._tokenizer.decode(list(tokens), skip_special_tokens=True)

    def stream(self) -> TextStream:
        """For tokens that come one by one."""
        return TextStream(self)


class TextStream:
    """The text of tokens as they come; all its pieces together are the text of all tokens.

    A character whose bytes come in several tokens is given once it is whole.

        tokens  | context | since then |      context: the last ones that ended with a whole character
        text    | given       | to give
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._tokens: list[int] = []
        self._num_context = 0
        self._num_given = 0
        """Characters of the tokens' text."""

    def add(self, token: int) -> str:
        """The text that one more token completes; may be empty."""
        self._tokens.append(token)
        text = self._tokenizer.decode(self._tokens)
        if not text.endswith(INCOMPLETE):
            piece = text[self._num_given :]
            if piece:
                self._keep(len(self._tokens) - self._num_context)
            return piece
        if len(self._tokens) <= MAX_TOKENS:
            return ""
        piece = _certain(text)[self._num_given :]
        self._keep(MAX_TOKENS // 4)
        self._num_context = 0
        return piece

    def finish(self) -> str:
        """The rest: bytes at the end that are no character."""
        return self._tokenizer.decode(self._tokens)[self._num_given :]

    def _keep(self, num_tokens: int) -> None:
        """Of the tokens, all text of which is given as far as it is certain, the last ones as context."""
        self._tokens = self._tokens[-num_tokens:]
        self._num_context = num_tokens
        self._num_given = len(_certain(self._tokenizer.decode(self._tokens)))


def _certain(text: str) -> str:
    """What no further token changes: the bytes of an unfinished character are three at most, each a sign at most."""
    num_uncertain = len(text) - len(text.rstrip(INCOMPLETE))
    return text[: len(text) - min(num_uncertain, 3)]
