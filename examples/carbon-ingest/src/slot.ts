/** What a job of this system works on. A part that is left out means all of them. */
export interface Slot {
  module?: string
  dataType?: string
  target: 'entries' | 'factors' | 'emissions' | 'report'
  method: 'csv' | 'api' | 'computed'
  year: number
}

/** The name of a slot: one job at a time runs under it, and the last one that was started is its current job. */
export function slotKey({ module = '*', dataType = '*', target, method, year }: Slot): string {
  return [module, dataType, target, method, year].join('/')
}
