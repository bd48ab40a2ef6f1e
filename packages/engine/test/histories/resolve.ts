import type { Command, Numbered, Step, Wanted, Who, Wish } from './commands.ts'
import { heldBy, isLive, type Job, type Model } from './model.ts'

/** The wish as a step about jobs and attempts that there are; undefined when there is none to do it to. */
export function resolve(model: Model, wish: Wish, next: () => number): Step | undefined {
  if (model.attempts.length === 0 && ('attempt' in wish || 'attempts' in wish || 'endings' in wish)) return undefined
  const attempt = (who: Who) => pickAttempt(model, who)
  const numbered = (wanted: Wanted): Numbered => ({ ...wanted, job: next() })
  switch (wish.do) {
    case 'submit':
      return { ...wish, wanted: wish.wanted.map(numbered) }
    case 'claim':
      return Object.values(model.jobs).some((job) => isWanted(model, job)) ? wish : undefined
    case 'advance':
    case 'sweep':
    case 'retain':
      return wish
    case 'drain':
      return { ...wish, level: model.drain === 'off' ? wish.level : 'off' } // not for long, or nothing happens any more
    case 'claim_job':
    case 'cancel':
    case 'recover':
    case 'delete':
    case 'abort_pipeline': {
      const found = pickJob(model, wish)
      return found === undefined ? undefined : { ...wish, job: found }
    }
    case 'renew':
      return { ...wish, attempts: [...new Set(wish.attempts.map(attempt))] }
    case 'settle_all': {
      const endings = wish.endings.map((one) => ({ ...one, attempt: attempt(one.attempt) }))
      const rivals = wish.rivals ? rivalsOf(model, endings[0]?.attempt) : []
      const late = rivals.map((rival) => ({ attempt: rival, ending: 'complete' as const, withStep: false }))
      return { ...wish, endings: oncePerAttempt([...endings, ...late]) }
    }
    case 'defer': {
      const children = wish.children.map((wanted) => numbered(inSlotOfItsOwn(model, attempt(wish.attempt), wanted)))
      return withAttempt(model, { ...wish, children })
    }
    case 'chain':
      return withAttempt(model, { ...wish, wanted: numbered(wish.wanted) })
    case 'complete':
    case 'fail':
    case 'retry_later':
    case 'release':
    case 'let_go':
    case 'emit':
    case 'progress':
    case 'record_step':
    case 'run_step':
    case 'transaction':
      return withAttempt(model, wish)
  }
}

// A parent that waits keeps its slot, so a child that needs the slot of somebody who waits for it would wait for ever.
// Known and not looked for here: each generation has slots of its own.
function inSlotOfItsOwn(model: Model, attempt: number, wanted: Wanted): Wanted {
  if (wanted.slot === undefined) return wanted
  let generation = 1
  let job = model.jobs[model.attempts[attempt]?.job ?? -1]
  for (; job?.parent !== undefined; job = model.jobs[job.parent]) generation += 1
  return { ...wanted, slot: `${wanted.slot}/${generation}` }
}

// A claim while nothing is due, or would be after a sweep, costs time and shows nothing.
function isWanted({ now }: Model, { status, due, leaseUntil }: Job): boolean {
  return status === 'pending' ? due.minute <= now : leaseUntil !== undefined && leaseUntil <= now
}

type OfAttempt<A> = Extract<Command<A, Numbered>, { attempt: A }>

function withAttempt(model: Model, command: OfAttempt<Who>): Step {
  return { ...command, attempt: pickAttempt(model, command.attempt) }
}

function oncePerAttempt<T extends { attempt: number }>(reports: readonly T[]): T[] {
  return reports.filter(({ attempt }, nth) => reports.findIndex((one) => one.attempt === attempt) === nth)
}

function rivalsOf(model: Model, attempt: number | undefined): number[] {
  const job = model.attempts[attempt ?? -1]?.job
  return model.attempts.flatMap((other, nth) => (other.job === job && nth !== attempt ? [nth] : []))
}

type OfJob = Extract<Wish, { job: number }>

/** Mostly one that the command can do something to, now and then any that ever was. */
function pickJob(model: Model, { do: verb, job: nth }: OfJob): number | undefined {
  const fit = model.accepted.filter((number) => {
    const job = model.jobs[number]
    switch (verb) {
      case 'claim_job':
        return job?.status === 'pending'
      case 'recover':
        return job?.status === 'running' && !job.deferred
      case 'cancel':
        return isLive(job)
      case 'delete':
        return job !== undefined && !isLive(job)
      case 'abort_pipeline':
        return Object.values(model.jobs).some(({ pipeline }) => pipeline === number)
    }
  })
  const from = fit.length > 0 && nth % 5 !== 0 ? fit : model.accepted
  return from[nth % from.length]
}

/** Of the zombies mostly one whose job runs again, under another attempt: that is where a missing fence shows. */
function pickAttempt(model: Model, { zombie, nth }: Who): number {
  const all = model.attempts.map((_, attempt) => attempt)
  const wanted = all.filter((attempt) => (heldBy(model, attempt) === undefined) === zombie)
  const replaced = wanted.filter((attempt) => model.jobs[model.attempts[attempt]?.job ?? -1]?.status === 'running')
  const from = [nth % 4 === 0 ? [] : replaced, wanted, all].find(({ length }) => length > 0) ?? all
  return from[nth % from.length] as number
}
