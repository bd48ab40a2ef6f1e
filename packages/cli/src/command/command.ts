import type { Exit } from '../exit-codes.ts'
import type { Output } from '../output/output.ts'
import type { Sources } from '../configuration/resolve.ts'
import type { SettingName, Settings } from '../configuration/settings.ts'
import type { ValueOf, ValueSpec } from '../configuration/value.ts'

/** An option that only a command has, and that is not configured. */
export interface Option extends ValueSpec {
  readonly default?: string | number | boolean
}

/** What follows the command on the line. */
export interface Argument {
  readonly description: string
  readonly optional?: boolean
  readonly choices?: readonly string[]
}

type Options = Readonly<Record<string, Option>>
type Arguments = Readonly<Record<string, Argument>>

type OptionValues<O extends Options> = {
  readonly [N in keyof O]: O[N]['kind'] extends 'boolean'
    ? boolean
    : ValueOf<O[N]> | (O[N] extends { default: unknown } ? never : undefined)
}
type ArgumentValues<A extends Arguments> = {
  readonly [N in keyof A]:
    | (A[N]['choices'] extends readonly (infer Choice)[] ? Choice : string)
    | (A[N] extends { optional: true } ? undefined : never)
}

/** A command that is to be run, with everything it was given. */
export interface Invocation<
  O extends Options = Options,
  A extends Arguments = Arguments,
  S extends SettingName = never,
> {
  readonly args: ArgumentValues<A>
  readonly options: OptionValues<O>
  readonly settings: Settings<S>
  readonly sources: Sources
  readonly output: Output
}

/** A command as it is declared. */
export interface CommandSpec<O extends Options, A extends Arguments, S extends SettingName> {
  /** As it is typed: `jobs list`. */
  readonly name: string
  readonly summary: string
  readonly arguments?: A
  readonly options?: O
  /** The settings that it uses, and whose flags it takes. */
  readonly settings?: readonly S[]
  /** Resolves with how it ends; ok if it says nothing. */
  readonly run: (invocation: Invocation<O, A, S>) => Promise<Exit | void>
}

/** A command whose types are let go, as the table of commands holds it. */
export interface Command {
  readonly name: string
  readonly summary: string
  readonly arguments: Arguments
  readonly options: Options
  readonly settings: readonly SettingName[]
  readonly run: (invocation: Invocation<Options, Arguments, SettingName>) => Promise<Exit | void>
}

/** Declares a command; the one place where the types of its options are let go. */
export function command<
  const O extends Options = Record<never, never>,
  const A extends Arguments = Record<never, never>,
  const S extends SettingName = never,
>(spec: CommandSpec<O, A, S>): Command {
  return {
    name: spec.name,
    summary: spec.summary,
    arguments: spec.arguments ?? {},
    options: spec.options ?? {},
    settings: spec.settings ?? [],
    run: spec.run as unknown as Command['run'],
  }
}
