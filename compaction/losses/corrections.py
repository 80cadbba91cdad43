"""Detect that a person's message corrects the agent, by its beginning and by set phrases."""

from __future__ import annotations

from compaction.summaries.lines import flat

LOOK_AT = 200
"""Code points read from the start of a message: corrections come first."""

_BEGINS = (
    # English
    "no,", "no.", "no!", "no -", "no –", "no —", "nope", "wrong", "stop", "wait,", "undo", "revert",
    "that's wrong", "that is wrong", "that's not", "that is not", "this is wrong", "this is not",
    "not what i", "you forgot", "you missed", "you ignored", "you broke", "i said", "i told you",
    "i asked", "as i said", "like i said", "again:", "again,", "why did you", "why are you",
    # German
    "nein", "falsch", "stopp", "halt", "so nicht", "nicht so", "das ist falsch", "das stimmt nicht",
    "das war nicht", "das ist nicht", "ich habe gesagt", "ich hatte gesagt", "ich sagte",
    "wie gesagt", "du hast vergessen", "mach das rückgängig", "warum hast du",
    # French
    "non,", "non.", "non !", "non!", "c'est faux", "ce n'est pas", "ce n’est pas", "faux",
    "arrête", "arrêtez", "annule", "j'ai dit", "j’ai dit", "je t'ai dit", "je t’ai dit",
    "tu as oublié", "vous avez oublié", "pourquoi as-tu",
    # Spanish, Portuguese, Italian
    "eso no", "incorrecto", "está mal", "te dije", "ya te dije", "he dicho", "olvidaste",
    "deshaz", "detente", "por qué has", "não,", "não.", "errado", "está errado", "eu disse",
    "você esqueceu", "sbagliato", "ho detto", "hai dimenticato",
    # Russian
    "нет,", "нет.", "неправильно", "неверно", "не так", "я же сказал", "я сказал", "ты забыл",
    "стоп", "отмени",
    # Chinese, Japanese, Korean
    "不对", "不是", "错了", "停下", "我说", "你忘", "撤销", "為什麼你", "为什么你", "不對", "錯了",
    "違う", "違います", "ちがう", "いいえ", "そうじゃ", "間違", "やめて", "言った",
    "아니", "틀렸", "그게 아니",
)  # fmt: skip

_PHRASES = (
    "not what i asked", "not what i wanted", "not what i meant", "i already told you",
    "i already said", "i told you", "as i told you", "you forgot", "you were supposed to",
    "that's not right", "that is not right", "that's incorrect", "please revert", "please undo",
    "don't do that", "do not do that", "hatte ich gesagt", "habe ich doch gesagt",
    "du hast vergessen", "du solltest", "ce n'est pas ce que", "je vous ai dit", "no es lo que",
    "ya te lo dije", "não foi isso", "не то, что я", "不是我要的", "我已经说", "我說過", "我说过",
    "搞错", "弄错", "言ったはず",
)  # fmt: skip

_AGREES = (
    "no problem", "no worries", "no need", "no, that's fine", "no thanks", "no, thanks",
    "that's not a problem", "that is not a problem", "that's not urgent", "this is not urgent",
    "nein danke", "nein, danke", "non merci", "non, merci", "不是问题", "不是很急",
)  # fmt: skip


def is_correction(text: str) -> bool:
    """Return whether a message is a correction.

    Knows English, German, French, Spanish, Portuguese, Italian, Russian, Chinese, Japanese and
    Korean. Precise rather than complete: an estimate from a fixed list.
    """
    head = flat(text[:LOOK_AT]).lstrip("¡¿\"'*-> ")
    if head.startswith(_AGREES):
        return False
    return any(_begins(head, words) for words in _BEGINS) or any(
        phrase in head for phrase in _PHRASES
    )


def _begins(head: str, words: str) -> bool:
    """Return whether a text begins with these words as whole words, in scripts with blanks."""
    if not head.startswith(words):
        return False
    spaced = words[-1].isalpha() and words[-1] < "\u0530"
    return not (spaced and head[len(words) : len(words) + 1].isalnum())
