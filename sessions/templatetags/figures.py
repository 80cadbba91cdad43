"""Filters for figures."""

from __future__ import annotations

from django import template

from sessions import figures

register = template.Library()

for write in (
    figures.tokens,
    figures.signed,
    figures.window,
    figures.money,
    figures.percent,
    figures.finely,
    figures.duration,
    figures.moment,
    figures.age,
    figures.ago,
    figures.size,
    figures.us_as_ms,
    figures.whole,
):
    register.filter(write)
register.simple_tag(figures.figure)
