const hidden = '********'
const secretParameters = /^(password|sslpassword|token|secret)$/i

/** Hides all of a secret but how it begins, which tells tokens apart. */
export function maskSecret(secret: string): string {
  const tokenId = /^fp_[0-9a-f]{12}_/.exec(secret)?.[0]
  return `${tokenId ?? ''}${hidden}`
}

/** Hides the password of a URL, wherever it is. What is no URL is hidden whole if it may hold one. */
export function maskUrl(text: string): string {
  if (!URL.canParse(text)) return /password|@/i.test(text) ? hidden : text
  const url = new URL(text)
  const secrets = [...new Set(url.searchParams.keys())].filter((name) => secretParameters.test(name))
  if (url.password === '' && secrets.length === 0) return text
  if (url.password !== '') url.password = hidden
  for (const name of secrets) url.searchParams.set(name, hidden)
  return url.href
}
