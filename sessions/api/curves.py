"""What the lab's page computes by itself while a slider moves: sizes of chosen sessions, no text.

    GET /api/v1/simulations/curves?by=…    (as in `POST /simulations`; arrays repeat their name)

    {"basis": "estimated", "sessions": […], "left_out": n}     n: chosen, but beyond the limits

Each of `sessions`, with one number per step in every list (step 1 first):

    id, title, agent, model    texts; `id` is the UUID
    steps                      int, of all of these lists
    window, window_assumed     tokens; true where nobody knows the model's window
    hidden                     tokens of every prompt that the log does not show (inferred)
    price                      {fresh, read, write, output} nano-dollars a token, or null: unknown
    rules                      "anthropic" | "openai" | "unknown": by whose rules its cache works
    minimum, lifetime          tokens that a cached prefix has at least; seconds that it lives
    at         [int | null]    ms since the first call that tells its time
    other      [int]           tokens that arrive before the call and that no offload takes; all
                               that is below belongs to none of these
    users      [int]           of `other`: user and system texts, which a compaction keeps
    tools      [[int]]         tokens of each tool call and result that arrives, over 50 tokens
    output     [int]           tokens that the call writes (they arrive at the next step)
    recorded   [int]           tokens of the prompt as it was recorded, hidden part included

So the prompt of step N with nothing ever taken out is hidden + the sum over steps 1 … N of
`other` and `tools`. Tokens are in the session's counting. Sessions without a call are left out.
At most 60 sessions and 24,000 steps: about 150 KB compressed.
"""
