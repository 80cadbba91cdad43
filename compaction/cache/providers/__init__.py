"""How providers cache prompts: one file for each, found by walking this folder."""
