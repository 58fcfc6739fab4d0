-- Tokens that a judge read and wrote for the run's verifiers, as its server counted them: a part of what the run cost.
alter table "runs" add column "judge_tokens" bigint not null default 0;
