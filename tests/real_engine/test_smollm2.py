from __future__ import annotations

from pathlib import Path

import pytest
import torch

from llmsim.kernels.torch_backend import TorchKernels
from llmsim.real_engine.model.loading import load_model
from llmsim.real_engine.tokenizing import Tokenizer
from llmsim.tests.support.paged_generation import PagedGeneration
from llmsim.tests.support.smollm2 import smollm2_folder

pytestmark = pytest.mark.slow

QUESTIONS = ("What is the capital of France?", "Name three colours.")
NUM_OUTPUTS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return smollm2_folder(tmp_path_factory)


def test_a_real_model_answers_as_it_does_in_transformers(folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    from llmsim.tests.support.hf_models import greedy

    tokenizer = Tokenizer.of_folder(folder)
    prompts = [tokenizer.encode_chat([{"role": "user", "content": question}]) for question in QUESTIONS]
    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    expected = [greedy(theirs, prompt, NUM_OUTPUTS) for prompt in prompts]
    model = load_model(folder, device=torch.device("cpu"), dtype=torch.float32, seed=0, kernels=TorchKernels())
    generation = PagedGeneration(model, seed=0)
    sequences = [generation.add(prompt) for prompt in prompts]
    generation.run(NUM_OUTPUTS, max_chunk=20)
    assert [s.tokens[-NUM_OUTPUTS:] for s in sequences] == expected
    assert "Paris" in tokenizer.decode(expected[0])


def test_its_config_names_the_token_that_ends_an_answer(folder: Path) -> None:
    from llmsim.real_engine.model.loading import config_of

    assert Tokenizer.of_folder(folder).encode("<|im_end|>") == list(config_of(folder).eos_token_ids)


def test_its_chat_template_and_tokens_are_those_of_transformers(folder: Path) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(folder)
    messages = [
        {"role": "user", "content": "Grüße, 你好 🙂!"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "More"},
    ]
    ours = Tokenizer.of_folder(folder)
    assert ours.encode_chat(messages) == theirs.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
    stream = ours.stream()
    pieces = [stream.add(token) for token in ours.encode(messages[0]["content"])]
    assert "".join(pieces) + stream.finish() == messages[0]["content"]
