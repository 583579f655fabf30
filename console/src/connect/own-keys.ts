import { errorOfResponse } from '../api/error-of-response.ts';
import { apiUrl, sessionFetch } from '../api/session.ts';

/** A key of the person who is signed in. */
export interface OwnKey {
  readonly id: string;
  /** RFC 3339, as the others. */
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly usedAt: string | null;
}

/** A key right after it was made: its text is shown this once. */
export interface MadeKey extends OwnKey {
  readonly key: string;
}

const url = `${apiUrl}/session/keys`;

export async function listOwnKeys(signal: AbortSignal): Promise<readonly OwnKey[]> {
  const { keys } = (await (await answered(sessionFetch(url, { signal }))).json()) as { keys: readonly OwnKey[] };
  return keys;
}

/** Makes a key that is good for so many days. */
export async function makeOwnKey(days: number): Promise<MadeKey> {
  const sent = sessionFetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: ['changelog.changelog_read'], expiresIn: days * 86_400 }),
  });
  return (await (await answered(sent)).json()) as MadeKey;
}

export async function revokeOwnKey(id: string): Promise<void> {
  await answered(sessionFetch(`${url}/${id}`, { method: 'DELETE' }));
}

async function answered(sent: Promise<Response>): Promise<Response> {
  const response = await sent;
  if (!response.ok) throw await errorOfResponse(response);
  return response;
}
