/** The broker's queue for a queue of jobs: whoever takes a message from it claims that job. */
export function queueName(schema: string, queue: string): string {
  return `fencepost.${schema}.${queue}`
}

/** The exchange whose messages every worker of the schema gets. */
export function noticesName(schema: string): string {
  return `fencepost.${schema}.notices`
}
