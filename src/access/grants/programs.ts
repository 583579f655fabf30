import { hash } from 'node:crypto';
import type { Sealer } from '../../core/sealing.ts';
import { isStorable } from '../../core/storable-text.ts';

/** What is known of a program that asks to sign in. */
export interface Program {
  readonly clientId: string;
  /** What it calls itself. */
  readonly name: string;
  readonly redirectUris: readonly string[];
}

/** Of a registration or a metadata document: an error code of RFC 7591 and a sentence in printable ASCII. */
export class ProgramFault extends Error {
  readonly code: 'invalid_redirect_uri' | 'invalid_client_metadata';

  constructor(code: ProgramFault['code'], message: string) {
    super(message);
    this.name = 'ProgramFault';
    this.code = code;
  }
}

export const programLimits = { redirectUris: 4, redirectUri: 500, name: 100, clientId: 1_536 };

/** Programs that register get an id that contains what they registered. Nothing is stored. */
export interface RegisteredPrograms {
  /** Throws a ProgramFault. Members other than `client_name` and `redirect_uris` are ignored (RFC 7591, 2). */
  register(metadata: unknown): Program;
  /** Undefined for an id that this installation did not issue. */
  read(clientId: string): Program | undefined;
}

const prefix = 'annals_program_';
const purpose = 'registered program';

export function createRegisteredPrograms(sealer: Sealer, schemes: readonly string[]): RegisteredPrograms {
  return {
    register(metadata) {
      const { name, redirectUris } = readMetadata(metadata, schemes);
      const sealed = sealer.seal(Buffer.from(JSON.stringify([name, ...redirectUris])), purpose);
      const clientId = prefix + Buffer.from(sealed).toString('base64url');
      if (clientId.length > programLimits.clientId)
        throw new ProgramFault('invalid_client_metadata', 'client_name and redirect_uris are too long together');
      return { clientId, name, redirectUris };
    },
    read(clientId) {
      if (!clientId.startsWith(prefix) || clientId.length > programLimits.clientId) return undefined;
      const opened = sealer.open(Buffer.from(clientId.slice(prefix.length), 'base64url'), purpose);
      if (opened === undefined) return undefined;
      const [name = '', ...redirectUris] = JSON.parse(Buffer.from(opened).toString()) as string[];
      return { clientId, name, redirectUris };
    },
  };
}

export function hashOfProgram(clientId: string): Buffer {
  return hash('sha256', clientId, 'buffer');
}

/** The name and the redirect URIs of client metadata (RFC 7591). Throws a ProgramFault. */
export function readMetadata(metadata: unknown, schemes: readonly string[]): Omit<Program, 'clientId'> {
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw new ProgramFault('invalid_client_metadata', 'The metadata must be a JSON object');
  const { client_name: name, redirect_uris: uris } = metadata as Record<string, unknown>;
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > programLimits.redirectUris)
    throw new ProgramFault('invalid_redirect_uri', `redirect_uris must be 1 to ${programLimits.redirectUris} URIs`);
  const redirectUris = uris.map((uri) => {
    const fault = faultOfRedirectUri(uri, schemes);
    if (fault !== undefined) throw new ProgramFault('invalid_redirect_uri', `Each of redirect_uris ${fault}`);
    return uri as string;
  });
  if (name === undefined) return { name: targetOf(redirectUris[0] ?? '').host, redirectUris };
  if (typeof name !== 'string' || name.trim() === '' || [...name].length > programLimits.name)
    throw new ProgramFault('invalid_client_metadata', `client_name must be 1 to ${programLimits.name} characters`);
  if (!isStorable(name) || /[\p{Cc}\p{Bidi_Control}]/u.test(name))
    throw new ProgramFault('invalid_client_metadata', 'client_name must not have control or bidirectional characters');
  return { name, redirectUris };
}

/** Where a redirect URI leads, as people are shown it. */
interface RedirectTarget {
  /** The host with its port; of a private-use scheme, the scheme. */
  readonly host: string;
  /** Any program on the person's computer may receive the answer. */
  readonly isLocal: boolean;
}

/** For a URI that `faultOfRedirectUri` accepts. */
export function targetOf(redirectUri: string): RedirectTarget {
  const { protocol, host, hostname } = new URL(redirectUri);
  if (protocol === 'https:') return { host, isLocal: false };
  return protocol === 'http:' ? { host: hostname, isLocal: true } : { host: `${protocol}//`, isLocal: true };
}

const loopbackNames: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Undefined for https, loopback and the private-use schemes. */
export function faultOfRedirectUri(uri: unknown, schemes: readonly string[]): string | undefined {
  if (typeof uri !== 'string' || uri.length > programLimits.redirectUri)
    return `must be a URI of at most ${programLimits.redirectUri} characters`;
  // A URL parser drops or replaces these, so that people would be shown another host than a browser opens.
  if (!/^[!-~]+$/.test(uri) || uri.includes('\\')) return 'must be printable ASCII without backslashes';
  const url = URL.parse(uri);
  if (url === null) return 'must be an absolute URI';
  if (uri.includes('#')) return 'must have no fragment';
  if (url.username !== '' || url.password !== '') return 'must have no user or password';
  const scheme = url.protocol.slice(0, -1);
  const isWeb = scheme === 'https' || (scheme === 'http' && loopbackNames.has(url.hostname));
  if (isWeb && !uri.toLowerCase().startsWith(`${scheme}://`)) return 'must begin with its scheme and //';
  if (isWeb || schemes.includes(scheme)) return undefined;
  return `must be https, http of localhost, 127.0.0.1 or [::1], or have one of the schemes ${schemes.join(', ')}`;
}

/** Whether a redirect URI is registered, character for character; the port of loopback is free (RFC 8252, 7.3). */
export function isRedirectUriOf({ redirectUris }: Pick<Program, 'redirectUris'>, uri: string): boolean {
  return redirectUris.some((registered) => {
    if (registered === uri) return true;
    const loopback = /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(\/[^\s\\#]*)?$/;
    const [, host, path = ''] = loopback.exec(uri) ?? [];
    const [, registeredHost, registeredPath = ''] = loopback.exec(registered) ?? [];
    return host !== undefined && host === registeredHost && path === registeredPath;
  });
}
