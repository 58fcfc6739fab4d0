-- Why the newest try to prepare the model failed: the run that ends after too many tells it.
alter table "runs" add column "prepare_reason" text;
