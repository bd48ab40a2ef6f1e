/** A queue of its own: workers of other systems on the same Postgres have nothing to do with these jobs. */
export const carbonQueue = 'carbon'

/** A worker that has said nothing for so long is taken for dead. Short, because somebody is watching. */
export const leaseMs = 3_000
