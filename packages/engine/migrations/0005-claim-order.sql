-- The claim's order, by operation and apart for jobs of a slot: a claim never reads jobs that its worker has no handler
-- for, and jobs that wait for their slot are not in the way of those that wait for nothing.
drop index live_jobs_claim;
create index live_jobs_claim on live_jobs (queue, operation, priority, run_after, job_id)
  where status = 'pending' and slot_key is null;
-- A pending job has no locked_by and no deferred_at. Each statement says one of them, so that it can be planned over the
-- index that it was written for, and over no other.
create index live_jobs_claim_slotted on live_jobs (queue, operation, priority, run_after, job_id)
  where status = 'pending' and slot_key is not null and locked_by is null;
-- For a claim that has read many jobs of busy slots: from here it goes from slot to slot, whatever number of jobs each has.
create index live_jobs_claim_by_slot on live_jobs (queue, operation, priority, slot_key, run_after, job_id)
  where status = 'pending' and slot_key is not null and deferred_at is null;
