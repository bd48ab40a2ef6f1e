import { readFileSync } from 'node:fs'
import { UsageError } from '../failure.ts'

const standardInput = 0

/** A payload as it is given on the command line: JSON, @path, or - for standard input. */
export function readPayload(given: string, command: string): unknown {
  const [text, from] = textOf(given, command)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new UsageError(`The payload${from} is not JSON: ${(error as Error).message}.`, {
      command,
      cause: error,
    })
  }
}

function textOf(given: string, command: string): [text: string, from: string] {
  if (given === '-') return [readFileSync(standardInput, 'utf8'), ' on standard input']
  if (!given.startsWith('@')) return [given, '']
  const path = given.slice(1)
  try {
    return [readFileSync(path, 'utf8'), ` in ${path}`]
  } catch (error) {
    throw new UsageError(`The payload cannot be read: ${(error as Error).message}.`, {
      command,
      cause: error,
    })
  }
}
