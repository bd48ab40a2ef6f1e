/** The names of the operations, in a module of their own: what a module imports is stripped of its types, too. */
export type Name = 'echo' | 'isolated' | 'failing' | 'stubborn'

export const nameOf = (name: Name): Name => name
