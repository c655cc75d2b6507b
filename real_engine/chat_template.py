"""A model's own way of writing a conversation as one prompt: a Jinja template in its folder.

jinja2 comes with torch. A template is the work of strangers, so it runs in a sandbox.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from .model.errors import BadTokenizer
from .model.json_file import read_json

SPECIAL_TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token")


class ChatTemplate:
    """Messages to text."""

    def __init__(self, template: str, special_tokens: Mapping[str, str], source: Path) -> None:
        """Raises BadTokenizer, naming the source, where Jinja cannot parse the template."""
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _refuse
        self._source = source
        self._special_tokens = dict(special_tokens)
        try:
            self._template = environment.from_string(template)
        except TemplateError as error:
            raise BadTokenizer(f"{source}: the chat template is not Jinja: {error}") from None

    @classmethod
    def of_folder(cls, folder: Path) -> ChatTemplate | None:
        """That of chat_template.jinja or of tokenizer_config.json's `chat_template`; None where neither has one."""
        path = folder / "tokenizer_config.json"
        config = read_json(path) if path.exists() else {}
        source = folder / "chat_template.jinja"
        template = source.read_text(encoding="utf-8") if source.exists() else _default(config.get("chat_template"))
        if template is None:
            return None
        return cls(template, _special_tokens(config), source if source.exists() else path)

    def render(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The prompt of messages with `role` and `content`, up to where the assistant answers.

        Raises BadTokenizer with what the template complains of.
        """
        try:
            return self._template.render(messages=messages, add_generation_prompt=True, **self._special_tokens)
        except TemplateError as error:
            raise BadTokenizer(f"{self._source}: the chat template says: {error}") from None


def _default(value: object) -> str | None:
    """A template, or the one named `default` of several."""
    if isinstance(value, list):
        value = {str(entry["name"]): entry["template"] for entry in value if isinstance(entry, dict)}.get("default")
    return value if isinstance(value, str) else None


def _special_tokens(config: Mapping[str, object]) -> dict[str, str]:
    """As text; a tokenizer_config.json has each as text or as an object with `content`."""
    tokens = {name: config.get(name) for name in SPECIAL_TOKENS}
    texts = {name: token.get("content") if isinstance(token, dict) else token for name, token in tokens.items()}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _to_json(value: object, indent: int | None = None) -> str:
    """Unlike Jinja's own, without HTML escapes."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> None:
    raise TemplateError(message)
