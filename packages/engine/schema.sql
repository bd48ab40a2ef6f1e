-- The schema as the migrations build it. Made by scripts/schema.mjs; change a migration, not this file.

CREATE OR REPLACE FUNCTION fencepost.clock()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN statement_timestamp()
;

CREATE OR REPLACE FUNCTION fencepost.hand_over_freed_locks()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
    begin
      if exists (select from fencepost.live_jobs job
                  where job.waiting_run_after is not null and job.lock_key = any(array(select lock_key from freed))) then
        perform fencepost.hand_over_locks(array(select lock_key from freed));
      end if;
      return null;
    end
    $function$
;

CREATE OR REPLACE FUNCTION fencepost.hand_over_locks(lock_keys text[])
 RETURNS integer
 LANGUAGE plpgsql
AS $function$
    declare
      handed integer;
    begin
      with first as materialized (
        select wanted.lock_key, line.job_id
          from (select distinct unnest(lock_keys) as lock_key) wanted
         cross join lateral (
           select job.job_id from fencepost.live_jobs job
            where job.lock_key = wanted.lock_key and job.waiting_run_after is not null
            order by job.job_id limit 1
              for no key update skip locked
         ) line
      ),
      taken as (
        insert into fencepost.resource_locks (lock_key, job_id, acquired_at)
        select lock_key, job_id, fencepost.clock() from first order by lock_key
        on conflict (lock_key) do nothing
        returning job_id
      ),
      released as (
        update fencepost.live_jobs set run_after = waiting_run_after, waiting_run_after = null
         where job_id = any(array(select job_id from taken))
        returning job_id, queue, lock_key
      ),
      told as (
        insert into fencepost.stored_events (job_id, ts, event, fields)
        select job_id, fencepost.clock(), 'job.lock_acquired', jsonb_build_object('lock_key', lock_key) from released
      ),
      woken as materialized (
        select pg_notify('fencepost_notices', json_build_object('kind', 'wake', 'queue', queue)::text)
          from (select distinct queue from released) queues
      )
      select (select count(*) from released) + 0 * (select count(*) from woken) into handed;
      return handed;
    end
    $function$
;

CREATE OR REPLACE FUNCTION fencepost.job_id_floor(at timestamp with time zone)
 RETURNS uuid
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN (rpad(encode(int8send((((EXTRACT(epoch FROM at) * (1000)::numeric))::bigint << 16)), 'hex'::text), 32, '0'::text))::uuid
;

CREATE OR REPLACE FUNCTION fencepost.new_job_id(at timestamp with time zone, nth bigint)
 RETURNS uuid
 LANGUAGE sql
 PARALLEL SAFE
RETURN (encode((int8send((((((((date_part('epoch'::text, at) * (4096000)::double precision))::bigint + nth) >> 12) << 16) | (28672)::bigint) | ((((date_part('epoch'::text, at) * (4096000)::double precision))::bigint + nth) & (4095)::bigint))) || int8send((((random() * ('4611686018427387903'::bigint)::double precision))::bigint | '-9223372036854775808'::bigint))), 'hex'::text))::uuid
;

CREATE OR REPLACE FUNCTION fencepost.submit_job(operation text, queue text, payload jsonb, priority integer, run_after timestamp with time zone, delay_ms integer, max_attempts integer, slot_key text, pipeline_id uuid, submitted_by text)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
    #variable_conflict use_column
    declare
      new_id uuid;
    begin
      insert into fencepost.live_jobs (job_id, operation, queue, payload, priority, run_after, max_attempts, slot_key,
                                  pipeline_id, submitted_at, submitted_by)
      select fencepost.new_job_id(fencepost.clock(), 1), $1, $2, $3, $4,
             coalesce($5, fencepost.clock() + $6 * interval '1 millisecond'), $7, $8, $9, fencepost.clock(), $10
       where not exists (select from fencepost.settings where key = 'drain' and value <> 'off')
      returning job_id into new_id;
      return new_id;
    end
    $function$
;

CREATE OR REPLACE FUNCTION fencepost.submit_job(operation text, queue text, payload jsonb, priority integer, run_after timestamp with time zone, delay_ms integer, max_attempts integer, slot_key text, pipeline_id uuid, submitted_by text, tags text[], timeout_ms integer, start_by timestamp with time zone, start_within_ms integer)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
    #variable_conflict use_column
    declare
      new_id uuid;
    begin
      insert into fencepost.live_jobs (job_id, operation, queue, payload, priority, run_after, max_attempts, slot_key,
                                  pipeline_id, submitted_at, submitted_by, tags, timeout_ms, start_by)
      select fencepost.new_job_id(fencepost.clock(), 1), $1, $2, $3, $4,
             coalesce($5, fencepost.clock() + $6 * interval '1 millisecond'), $7, $8, $9, fencepost.clock(), $10, $11, $12,
             coalesce($13, fencepost.clock() + $14 * interval '1 millisecond')
       where not exists (select from fencepost.settings where key = 'drain' and value <> 'off')
      returning job_id into new_id;
      return new_id;
    end
    $function$
;

sequence event_ids as bigint

sequence job_steps_id_seq as bigint

table bulk_acts (
  bulk_act_id uuid not null,
  act text not null,
  filter jsonb not null,
  before_job_id uuid not null,
  previewed_count bigint not null,
  previewed_at timestamp with time zone not null,
  state text not null default 'previewed'::text,
  submitted_by text,
  cursor_job_id uuid,
  done bigint not null default 0,
  refused bigint not null default 0,
  started_at timestamp with time zone,
  ended_at timestamp with time zone,
  constraint bulk_acts_act CHECK (act = ANY (ARRAY['run_again'::text, 'cancel'::text, 'delete'::text])),
  constraint bulk_acts_pkey PRIMARY KEY (bulk_act_id),
  constraint bulk_acts_state CHECK (state = ANY (ARRAY['previewed'::text, 'running'::text, 'completed'::text, 'stopped'::text])),
  constraint bulk_acts_times CHECK (
CASE state
    WHEN 'previewed'::text THEN num_nonnulls(started_at, ended_at) = 0
    WHEN 'running'::text THEN started_at IS NOT NULL AND ended_at IS NULL
    ELSE num_nulls(started_at, ended_at) = 0
END)
);
CREATE UNIQUE INDEX bulk_acts_pkey ON fencepost.bulk_acts USING btree (bulk_act_id);
CREATE INDEX bulk_acts_running ON fencepost.bulk_acts USING btree (started_at) WHERE (state = 'running'::text);

table finished_jobs (
  submitted_at timestamp with time zone not null,
  run_after timestamp with time zone not null,
  locked_at timestamp with time zone,
  started_at timestamp with time zone,
  completed_at timestamp with time zone not null,
  submitted_event_id bigint not null,
  started_event_id bigint,
  completed_event_id bigint,
  job_id uuid not null,
  priority integer not null,
  attempts integer not null,
  max_attempts integer not null,
  children_total integer,
  deferred_at timestamp with time zone,
  progress_current bigint,
  progress_total bigint,
  deleted_at timestamp with time zone,
  status text not null,
  attempt_id uuid,
  locked_by text,
  operation text not null,
  queue text not null,
  payload jsonb not null,
  parent_job_id uuid,
  pipeline_id uuid,
  lock_key text,
  slot_key text,
  dedup_key text,
  submitted_by text,
  result jsonb,
  error text,
  error_code text,
  tags text[],
  timeout_ms integer,
  start_by timestamp with time zone,
  constraint finished_jobs_attempts CHECK (attempts >= 0 AND attempts <= max_attempts),
  constraint finished_jobs_cancelled CHECK (status <> 'cancelled'::text OR attempt_id IS NULL),
  constraint finished_jobs_error CHECK ((status = 'completed'::text) = (error IS NULL)),
  constraint finished_jobs_pkey PRIMARY KEY (job_id),
  constraint finished_jobs_status CHECK (status = ANY (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text]))
);
CREATE INDEX finished_jobs_error_code ON fencepost.finished_jobs USING btree (error_code, job_id) WHERE (error_code IS NOT NULL);
CREATE INDEX finished_jobs_lately ON fencepost.finished_jobs USING brin (completed_at) WITH (pages_per_range='32', autosummarize='on');
CREATE INDEX finished_jobs_lock ON fencepost.finished_jobs USING btree (lock_key, job_id) WHERE (lock_key IS NOT NULL);
CREATE INDEX finished_jobs_parent ON fencepost.finished_jobs USING btree (parent_job_id, status) WHERE (parent_job_id IS NOT NULL);
CREATE INDEX finished_jobs_pipeline ON fencepost.finished_jobs USING btree (pipeline_id, job_id) WHERE (pipeline_id IS NOT NULL);
CREATE INDEX finished_jobs_pipeline_own ON fencepost.finished_jobs USING btree (pipeline_id, status, job_id) WHERE ((pipeline_id IS NOT NULL) AND (parent_job_id IS NULL));
CREATE UNIQUE INDEX finished_jobs_pkey ON fencepost.finished_jobs USING btree (job_id);
CREATE INDEX finished_jobs_tags ON fencepost.finished_jobs USING gin (tags) WHERE (tags IS NOT NULL);
CREATE INDEX finished_jobs_unsuccessful ON fencepost.finished_jobs USING btree (status, job_id) WHERE (status <> 'completed'::text);

table idempotency_keys (
  caller text not null,
  key text not null,
  request_hash bytea not null,
  answer text,
  created_at timestamp with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (caller, key)
);
CREATE INDEX idempotency_keys_age ON fencepost.idempotency_keys USING btree (created_at);
CREATE UNIQUE INDEX idempotency_keys_pkey ON fencepost.idempotency_keys USING btree (caller, key);

table job_steps (
  id bigint not null,
  job_id uuid not null,
  attempt_id uuid not null,
  ordinal integer not null,
  step text not null,
  success boolean not null,
  message text,
  error text,
  elapsed_seconds double precision,
  result jsonb,
  created_at timestamp with time zone not null,
  constraint job_steps_pkey PRIMARY KEY (job_id, id)
);
CREATE UNIQUE INDEX job_steps_pkey ON fencepost.job_steps USING btree (job_id, id);

table live_jobs (
  submitted_at timestamp with time zone not null,
  run_after timestamp with time zone not null,
  submitted_event_id bigint not null default nextval('fencepost.event_ids'::regclass),
  job_id uuid not null,
  priority integer not null default 0,
  max_attempts integer not null,
  locked_at timestamp with time zone,
  lease_until timestamp with time zone,
  started_at timestamp with time zone,
  started_event_id bigint,
  deferred_at timestamp with time zone,
  progress_current bigint,
  progress_total bigint,
  children_total integer,
  children_fail_at integer,
  attempts integer not null default 0,
  status text not null default 'pending'::text,
  attempt_id uuid,
  locked_by text,
  operation text not null,
  queue text not null,
  payload jsonb not null,
  parent_job_id uuid,
  pipeline_id uuid,
  lock_key text,
  slot_key text,
  dedup_key text,
  submitted_by text,
  result jsonb,
  error text,
  error_code text,
  tags text[],
  timeout_ms integer,
  start_by timestamp with time zone,
  waiting_run_after timestamp with time zone,
  next_part text,
  children_skipped jsonb,
  constraint live_jobs_attempts CHECK (attempts >= 0 AND attempts <= max_attempts AND max_attempts >= 1),
  constraint live_jobs_fields CHECK (
CASE
    WHEN status = 'pending'::text THEN attempts < max_attempts AND num_nonnulls(attempt_id, lease_until, locked_by, locked_at, started_event_id, deferred_at) = 0
    WHEN deferred_at IS NULL THEN num_nulls(attempt_id, lease_until, locked_by, locked_at, started_at) = 0
    ELSE num_nonnulls(attempt_id, lease_until) = 0 AND children_total >= 1 AND children_fail_at >= 1
END),
  constraint live_jobs_pkey PRIMARY KEY (job_id),
  constraint live_jobs_status CHECK (status = ANY (ARRAY['pending'::text, 'running'::text])),
  constraint live_jobs_waiting CHECK (waiting_run_after IS NULL OR status = 'pending'::text AND lock_key IS NOT NULL AND run_after > '9999-01-01 00:00:00+00'::timestamp with time zone)
) with (fillfactor=40, autovacuum_vacuum_scale_factor=0.02, autovacuum_vacuum_threshold=1000);
CREATE INDEX live_jobs_claim ON fencepost.live_jobs USING btree (queue, operation, priority, run_after, job_id) WHERE ((status = 'pending'::text) AND (slot_key IS NULL));
CREATE INDEX live_jobs_claim_by_slot ON fencepost.live_jobs USING btree (queue, operation, priority, slot_key, run_after, job_id) WHERE ((status = 'pending'::text) AND (slot_key IS NOT NULL) AND (deferred_at IS NULL));
CREATE INDEX live_jobs_claim_slotted ON fencepost.live_jobs USING btree (queue, operation, priority, run_after, job_id) WHERE ((status = 'pending'::text) AND (slot_key IS NOT NULL) AND (locked_by IS NULL));
CREATE INDEX live_jobs_due ON fencepost.live_jobs USING btree (run_after) WHERE ((status = 'pending'::text) AND (attempt_id IS NULL));
CREATE INDEX live_jobs_error_code ON fencepost.live_jobs USING btree (error_code, job_id) WHERE (error_code IS NOT NULL);
CREATE INDEX live_jobs_lease ON fencepost.live_jobs USING btree (lease_until) WHERE ((status = 'running'::text) AND ((lease_until IS NOT NULL) OR (deferred_at IS NOT NULL)));
CREATE INDEX live_jobs_line ON fencepost.live_jobs USING btree (lock_key, job_id) WHERE (waiting_run_after IS NOT NULL);
CREATE INDEX live_jobs_lock ON fencepost.live_jobs USING btree (lock_key) WHERE (lock_key IS NOT NULL);
CREATE UNIQUE INDEX live_jobs_one_active_per_dedup_key ON fencepost.live_jobs USING btree (dedup_key) WHERE (dedup_key IS NOT NULL);
CREATE UNIQUE INDEX live_jobs_one_running_per_slot ON fencepost.live_jobs USING btree (slot_key) WHERE ((status = 'running'::text) AND (slot_key IS NOT NULL));
CREATE INDEX live_jobs_parent ON fencepost.live_jobs USING btree (parent_job_id) WHERE (parent_job_id IS NOT NULL);
CREATE INDEX live_jobs_pipeline ON fencepost.live_jobs USING btree (pipeline_id, job_id) WHERE (pipeline_id IS NOT NULL);
CREATE INDEX live_jobs_pipeline_own ON fencepost.live_jobs USING btree (pipeline_id, job_id) WHERE ((pipeline_id IS NOT NULL) AND (parent_job_id IS NULL));
CREATE UNIQUE INDEX live_jobs_pkey ON fencepost.live_jobs USING btree (job_id) WITH (fillfactor='50');
CREATE INDEX live_jobs_running_unclaimed ON fencepost.live_jobs USING btree (job_id) WHERE ((status = 'running'::text) AND (locked_at IS NULL));
CREATE INDEX live_jobs_start_by ON fencepost.live_jobs USING btree (start_by) WHERE ((status = 'pending'::text) AND (start_by IS NOT NULL) AND (started_at IS NULL));
CREATE INDEX live_jobs_tags ON fencepost.live_jobs USING gin (tags) WHERE (tags IS NOT NULL);

table migrations (
  version integer not null,
  name text not null,
  applied_at timestamp with time zone not null default now(),
  constraint migrations_pkey PRIMARY KEY (version)
);
CREATE UNIQUE INDEX migrations_pkey ON fencepost.migrations USING btree (version);

table paused_queues (
  queue text not null,
  paused_at timestamp with time zone not null,
  paused_by text,
  constraint paused_queues_pkey PRIMARY KEY (queue)
);
CREATE UNIQUE INDEX paused_queues_pkey ON fencepost.paused_queues USING btree (queue);

table resource_locks (
  lock_key text not null,
  job_id uuid not null,
  attempt_id uuid,
  acquired_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint resource_locks_expiry CHECK ((attempt_id IS NULL) = (expires_at IS NULL)),
  constraint resource_locks_pkey PRIMARY KEY (lock_key)
) with (fillfactor=70);
CREATE UNIQUE INDEX resource_locks_pkey ON fencepost.resource_locks USING btree (lock_key);
CREATE TRIGGER resource_locks_hand_over AFTER DELETE ON fencepost.resource_locks REFERENCING OLD TABLE AS freed FOR EACH STATEMENT EXECUTE FUNCTION fencepost.hand_over_freed_locks();

table run_agains (
  job_id uuid not null,
  run_again_of uuid not null,
  constraint run_agains_pkey PRIMARY KEY (job_id)
);
CREATE INDEX run_agains_of ON fencepost.run_agains USING btree (run_again_of, job_id);
CREATE UNIQUE INDEX run_agains_pkey ON fencepost.run_agains USING btree (job_id);

table schedules (
  name text not null,
  operation text not null,
  payload jsonb not null,
  queue text,
  priority integer not null default 0,
  max_attempts integer,
  cron text,
  time_zone text,
  every_ms bigint,
  catch_up text not null,
  overlap text not null,
  next_at timestamp with time zone not null,
  paused_at timestamp with time zone,
  last_due_at timestamp with time zone,
  last_outcome text,
  last_job_id uuid,
  last_error text,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  updated_by text,
  constraint schedules_catch_up CHECK (catch_up = ANY (ARRAY['once'::text, 'all'::text, 'skip'::text])),
  constraint schedules_one_rule CHECK ((cron IS NULL) <> (every_ms IS NULL) AND (cron IS NULL) = (time_zone IS NULL)),
  constraint schedules_overlap CHECK (overlap = ANY (ARRAY['allow'::text, 'skip'::text, 'queue'::text])),
  constraint schedules_pkey PRIMARY KEY (name)
);
CREATE INDEX schedules_next ON fencepost.schedules USING btree (next_at) WHERE (paused_at IS NULL);
CREATE UNIQUE INDEX schedules_pkey ON fencepost.schedules USING btree (name);

table settings (
  key text not null,
  value text not null,
  updated_at timestamp with time zone not null,
  updated_by text,
  constraint settings_pkey PRIMARY KEY (key)
);
CREATE UNIQUE INDEX settings_pkey ON fencepost.settings USING btree (key);

table slots (
  slot_key text not null,
  job_id uuid not null,
  attempt_id uuid,
  held_until timestamp with time zone,
  constraint slots_pkey PRIMARY KEY (slot_key)
) with (fillfactor=70);
CREATE UNIQUE INDEX slots_pkey ON fencepost.slots USING btree (slot_key);

table stored_events (
  id bigint not null default nextval('fencepost.event_ids'::regclass),
  job_id uuid not null,
  attempt_id uuid,
  ts timestamp with time zone not null,
  level text not null default 'info'::text,
  event text not null,
  message text,
  fields jsonb,
  constraint stored_events_level CHECK (level = ANY (ARRAY['info'::text, 'warning'::text, 'error'::text])),
  constraint stored_events_pkey PRIMARY KEY (job_id, id)
);
CREATE INDEX stored_events_lately ON fencepost.stored_events USING brin (id) WITH (pages_per_range='32', autosummarize='on');
CREATE UNIQUE INDEX stored_events_pkey ON fencepost.stored_events USING btree (job_id, id);

table sweeps (
  the_only boolean not null default true,
  begun_at timestamp with time zone not null,
  constraint sweeps_one_row CHECK (the_only),
  constraint sweeps_pkey PRIMARY KEY (the_only)
) with (fillfactor=50);
CREATE UNIQUE INDEX sweeps_pkey ON fencepost.sweeps USING btree (the_only);

table tokens (
  token_id text not null,
  name text not null,
  role text not null,
  hash bytea not null,
  created_at timestamp with time zone not null,
  created_by text,
  last_used_at timestamp with time zone,
  revoked_at timestamp with time zone,
  revoked_by text,
  expires_at timestamp with time zone,
  constraint tokens_hash CHECK (octet_length(hash) = 32),
  constraint tokens_pkey PRIMARY KEY (token_id),
  constraint tokens_role CHECK (role = ANY (ARRAY['viewer'::text, 'operator'::text, 'admin'::text]))
);
CREATE UNIQUE INDEX tokens_name ON fencepost.tokens USING btree (name) WHERE (revoked_at IS NULL);
CREATE UNIQUE INDEX tokens_pkey ON fencepost.tokens USING btree (token_id);

table workers (
  worker_id text not null,
  host text not null,
  pid integer not null,
  version text not null,
  operations text[] not null,
  concurrency integer not null,
  started_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  queues text[],
  constraint workers_pkey PRIMARY KEY (worker_id)
) with (fillfactor=70);
CREATE UNIQUE INDEX workers_pkey ON fencepost.workers USING btree (worker_id);

view job_events as
 SELECT stored_events.id,
    stored_events.job_id,
    stored_events.attempt_id,
    stored_events.ts,
    stored_events.level,
    stored_events.event,
    stored_events.message,
    stored_events.fields
   FROM fencepost.stored_events
UNION ALL
 SELECT live_jobs.submitted_event_id AS id,
    live_jobs.job_id,
    NULL::uuid AS attempt_id,
    live_jobs.submitted_at AS ts,
    'info'::text AS level,
    'job.submitted'::text AS event,
    NULL::text AS message,
        CASE
            WHEN live_jobs.submitted_by IS NOT NULL THEN jsonb_build_object('by', live_jobs.submitted_by)
            ELSE NULL::jsonb
        END AS fields
   FROM fencepost.live_jobs
UNION ALL
 SELECT finished_jobs.submitted_event_id AS id,
    finished_jobs.job_id,
    NULL::uuid AS attempt_id,
    finished_jobs.submitted_at AS ts,
    'info'::text AS level,
    'job.submitted'::text AS event,
    NULL::text AS message,
        CASE
            WHEN finished_jobs.submitted_by IS NOT NULL THEN jsonb_build_object('by', finished_jobs.submitted_by)
            ELSE NULL::jsonb
        END AS fields
   FROM fencepost.finished_jobs
UNION ALL
 SELECT live_jobs.started_event_id AS id,
    live_jobs.job_id,
    live_jobs.attempt_id,
    live_jobs.locked_at AS ts,
    'info'::text AS level,
    'job.started'::text AS event,
    NULL::text AS message,
    jsonb_build_object('worker', live_jobs.locked_by, 'attempt', live_jobs.attempts) AS fields
   FROM fencepost.live_jobs
  WHERE live_jobs.started_event_id IS NOT NULL
UNION ALL
 SELECT finished_jobs.started_event_id AS id,
    finished_jobs.job_id,
    finished_jobs.attempt_id,
    finished_jobs.locked_at AS ts,
    'info'::text AS level,
    'job.started'::text AS event,
    NULL::text AS message,
    jsonb_build_object('worker', finished_jobs.locked_by, 'attempt', finished_jobs.attempts) AS fields
   FROM fencepost.finished_jobs
  WHERE finished_jobs.started_event_id IS NOT NULL
UNION ALL
 SELECT finished_jobs.completed_event_id AS id,
    finished_jobs.job_id,
    finished_jobs.attempt_id,
    finished_jobs.completed_at AS ts,
    'info'::text AS level,
    'job.completed'::text AS event,
    NULL::text AS message,
    NULL::jsonb AS fields
   FROM fencepost.finished_jobs
  WHERE finished_jobs.completed_event_id IS NOT NULL;

view job_queue as
 SELECT live_jobs.job_id,
    live_jobs.submitted_at AS enqueued_at,
    live_jobs.run_after AS visible_at,
    NULL::timestamp with time zone AS claimed_at,
    NULL::text AS claimed_by,
    NULL::uuid AS attempt_id,
    live_jobs.attempts AS attempt_count
   FROM fencepost.live_jobs
  WHERE live_jobs.status = 'pending'::text AND live_jobs.attempt_id IS NULL
UNION ALL
 SELECT live_jobs.job_id,
    live_jobs.submitted_at AS enqueued_at,
    live_jobs.lease_until AS visible_at,
    NULL::timestamp with time zone AS claimed_at,
    NULL::text AS claimed_by,
    live_jobs.attempt_id,
    live_jobs.attempts AS attempt_count
   FROM fencepost.live_jobs
  WHERE live_jobs.status = 'running'::text AND live_jobs.lease_until <= fencepost.clock()
UNION ALL
 SELECT live_jobs.job_id,
    live_jobs.submitted_at AS enqueued_at,
    live_jobs.run_after AS visible_at,
    live_jobs.locked_at AS claimed_at,
    live_jobs.locked_by AS claimed_by,
    live_jobs.attempt_id,
    live_jobs.attempts AS attempt_count
   FROM fencepost.live_jobs
  WHERE live_jobs.status = 'running'::text AND (live_jobs.lease_until > fencepost.clock() OR live_jobs.lease_until IS NULL);

view jobs as
 SELECT j.job_id,
    split_part(j.operation, '/'::text, 1) AS operation,
    j.queue,
    j.payload,
    j.status,
    j.priority,
    COALESCE(j.waiting_run_after, j.run_after) AS run_after,
    j.attempt_id,
    j.attempts,
    j.max_attempts,
    j.locked_by,
    j.locked_at,
    j.lease_until,
    j.lock_key,
    j.slot_key,
        CASE
            WHEN j.slot_key IS NULL THEN false
            ELSE (EXISTS ( SELECT
               FROM fencepost.slots s
              WHERE s.slot_key = j.slot_key AND s.job_id = j.job_id))
        END AS is_current,
    j.dedup_key,
    j.parent_job_id,
    j.pipeline_id,
    j.children_total,
        CASE
            WHEN j.children_total IS NOT NULL THEN (( SELECT count(*) AS count
               FROM fencepost.finished_jobs c
              WHERE c.parent_job_id = j.job_id AND c.status = 'completed'::text))::integer
            ELSE NULL::integer
        END AS children_completed,
        CASE
            WHEN j.children_total IS NOT NULL THEN (( SELECT count(*) AS count
               FROM fencepost.finished_jobs c
              WHERE c.parent_job_id = j.job_id AND c.status <> 'completed'::text))::integer
            ELSE NULL::integer
        END AS children_failed,
    j.deferred_at,
        CASE
            WHEN j.children_total IS NULL THEN j.progress_current
            ELSE ( SELECT count(*) AS count
               FROM fencepost.finished_jobs c
              WHERE c.parent_job_id = j.job_id)
        END AS progress_current,
        CASE
            WHEN j.children_total IS NULL THEN j.progress_total
            ELSE j.children_total::bigint
        END AS progress_total,
    j.result,
    j.error,
    j.error_code,
    j.submitted_at,
    j.submitted_by,
    j.started_at,
    NULL::timestamp with time zone AS completed_at,
    NULL::timestamp with time zone AS deleted_at,
    j.tags,
    j.timeout_ms,
    j.start_by,
    NULLIF(split_part(j.operation, '/'::text, 2), ''::text) AS part,
    j.waiting_run_after IS NOT NULL AS waits_for_lock
   FROM fencepost.live_jobs j
UNION ALL
 SELECT j.job_id,
    j.operation,
    j.queue,
    j.payload,
    j.status,
    j.priority,
    j.run_after,
    j.attempt_id,
    j.attempts,
    j.max_attempts,
    j.locked_by,
    j.locked_at,
    NULL::timestamp with time zone AS lease_until,
    j.lock_key,
    j.slot_key,
        CASE
            WHEN j.slot_key IS NULL THEN false
            ELSE (EXISTS ( SELECT
               FROM fencepost.slots s
              WHERE s.slot_key = j.slot_key AND s.job_id = j.job_id))
        END AS is_current,
    j.dedup_key,
    j.parent_job_id,
    j.pipeline_id,
    j.children_total,
        CASE
            WHEN j.children_total IS NOT NULL THEN (( SELECT count(*) AS count
               FROM fencepost.finished_jobs c
              WHERE c.parent_job_id = j.job_id AND c.status = 'completed'::text))::integer
            ELSE NULL::integer
        END AS children_completed,
        CASE
            WHEN j.children_total IS NOT NULL THEN (( SELECT count(*) AS count
               FROM fencepost.finished_jobs c
              WHERE c.parent_job_id = j.job_id AND c.status <> 'completed'::text))::integer
            ELSE NULL::integer
        END AS children_failed,
    j.deferred_at,
        CASE
            WHEN j.children_total IS NULL THEN j.progress_current
            ELSE ( SELECT count(*) AS count
               FROM fencepost.finished_jobs c
              WHERE c.parent_job_id = j.job_id)
        END AS progress_current,
        CASE
            WHEN j.children_total IS NULL THEN j.progress_total
            ELSE j.children_total::bigint
        END AS progress_total,
    j.result,
    j.error,
    j.error_code,
    j.submitted_at,
    j.submitted_by,
    j.started_at,
    j.completed_at,
    j.deleted_at,
    j.tags,
    j.timeout_ms,
    j.start_by,
    NULL::text AS part,
    false AS waits_for_lock
   FROM fencepost.finished_jobs j;
