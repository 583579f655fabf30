/** What is wrong with the parameters of DATABASE_URL. Undefined where they can be used. */
export function databaseUrlFault(url: string): string | undefined {
  const poolers = new URL(url).searchParams.getAll('pooler');
  if (poolers.some((pooler) => pooler !== 'transaction')) return 'may have no other pooler than transaction';
  return tlsFault(url);
}

const tlsModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** What is wrong with `sslmode` and `sslrootcert` of the URL. Undefined where they can be used. */
export function tlsFault(url: string): string | undefined {
  const parameters = new URL(url).searchParams;
  const mode = parameters.get('sslmode');
  const rootCertificate = parameters.get('sslrootcert');
  if (mode !== null && !tlsModes.includes(mode)) return `has an unknown sslmode; known are ${tlsModes.join(', ')}`;
  if (mode === 'verify-ca' && rootCertificate === null) return 'needs sslrootcert with sslmode=verify-ca';
  if (rootCertificate === 'system' && mode !== 'verify-full')
    return 'needs sslmode=verify-full with sslrootcert=system';
  return undefined;
}
