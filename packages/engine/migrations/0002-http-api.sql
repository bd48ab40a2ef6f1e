-- What the HTTP API keeps: who may call it, and which submissions were answered.

-- Bearer tokens. Only the SHA-256 of a token is here: 256 random bits need no slower hash.
create table tokens (
  token_id text primary key, -- the part of the token that is no secret, by which it is looked up
  name text not null,
  role text not null,
  hash bytea not null,
  created_at timestamptz not null,
  created_by text,
  last_used_at timestamptz, -- written at most once a minute
  revoked_at timestamptz,
  revoked_by text,
  constraint tokens_role check (role in ('viewer', 'operator', 'admin')),
  constraint tokens_hash check (octet_length(hash) = 32)
);

-- Accepted submissions by the key that the caller gave. Written in the submitting transaction: the job and the answer
-- are there together or not at all.
create table idempotency_keys (
  caller text not null,
  key text not null,
  request_hash bytea not null,
  answer text, -- null only inside the transaction that takes the key
  created_at timestamptz not null,
  primary key (caller, key)
);
create index idempotency_keys_age on idempotency_keys (created_at);

-- For readers of what happened lately, whichever job it happened to. Rows are written in about this order, so a few
-- pages of summary are enough, and writing costs next to nothing.
create index finished_jobs_lately on finished_jobs using brin (completed_at)
  with (pages_per_range = 32, autosummarize = on);
create index stored_events_lately on stored_events using brin (id) with (pages_per_range = 32, autosummarize = on);
