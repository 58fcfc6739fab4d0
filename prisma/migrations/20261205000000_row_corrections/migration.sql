-- What an update learns of a row before it trains it (algorithm.offPolicy, algorithm.kl), so that a replay sends the same.
alter table "training_rows"
  -- Like "mask", with what the trainer's logprobs left out; empty: nothing was corrected.
  add column "corrected_mask" integer[] not null default '{}',
  -- Factor of each token's advantage, float32, one per token after the first.
  add column "token_weights" bytea,
  -- A reference policy's logprobs, float32, one per token after the first.
  add column "ref_logprobs" bytea;

-- The estimator got the name of its paper.
update "runs" set "config" = jsonb_set("config", '{algorithm,advantage}', '"dr-grpo"')
where "config" #>> '{algorithm,advantage}' = 'centred';
