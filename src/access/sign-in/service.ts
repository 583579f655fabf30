import { readFileSync, statSync } from 'node:fs';
import { OperatorError } from '../../core/errors.ts';
import type { ReadRestriction } from '../../http/credentials.ts';
import { checkClientName } from '../oauth/client-identity.ts';
import { type Checks, createIdentityProvider, type IdentityProvider, type Person } from './provider.ts';
import { type Admissions, readRules, type SignInRules } from './rules.ts';

/** Why a sign-in failed. Declined: by the person, or by the provider for them. */
type SignInRefusal = 'not_admitted' | 'groups_left_out' | 'declined';

/** A person admitted by at least one tenant. */
export interface AdmittedPerson {
  readonly issuer: string;
  readonly subject: string;
  /** Shown as actor in change entries. */
  readonly name: string;
  readonly refreshToken: string | undefined;
  /** The signed token. */
  readonly idToken: string | undefined;
  /** When the sign-in ends if it cannot be renewed; milliseconds since 1970. */
  readonly expiresAt: number;
  readonly admissions: Admissions;
}

/** Sign-in with a company account (contract 18). Every method rejects if the provider is unreachable. */
export interface PeopleSignIn {
  begin: IdentityProvider['begin'];
  /** Undefined if the code is not the provider's or was used before. */
  finish(callback: URL, checks: Checks): Promise<AdmittedPerson | SignInRefusal | undefined>;
  /** Renews the sign-in; undefined if the provider ended it. `onReplaced`: see `IdentityProvider`. */
  renew(
    refreshToken: string,
    subject: string,
    onReplaced: (refreshToken: string) => void,
  ): Promise<AdmittedPerson | SignInRefusal | undefined>;
  signOutUrl: IdentityProvider['signOutUrl'];
}

interface SignInSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
  readonly rulesFile: string;
  readonly baseUrl: string;
}

/** Reads the rules. Throws an OperatorError for invalid rules. Contacts the provider only on the first sign-in. */
export function createPeopleSignIn(
  { rulesFile, baseUrl, ...provider }: SignInSettings,
  {
    now,
    readRestriction,
    onBadRules,
  }: { now: () => number; readRestriction: ReadRestriction; onBadRules: (error: unknown) => void },
): PeopleSignIn {
  const rules = watchedRules(rulesFile, (text) => readRules(text, readRestriction), onBadRules);
  const identities = createIdentityProvider({
    ...provider,
    lacksClaims: (claims) => rules().lacksClaims(claims),
    callback: `${baseUrl}/console/oidc/callback`,
    afterSignOut: `${baseUrl}/console/`,
    now,
  });

  function admit(person: Person): AdmittedPerson | SignInRefusal {
    const { admit: admitBy, lacksGroups } = rules();
    const admissions = admitBy(person.claims);
    if (admissions.size === 0) return lacksGroups(person.claims) ? 'groups_left_out' : 'not_admitted';
    const { issuer, subject, refreshToken, idToken, expiresAt } = person;
    return { issuer, subject, refreshToken, idToken, expiresAt, admissions, name: nameOf(person) };
  }

  return {
    begin: () => identities.begin(),
    async finish(callback, checks) {
      const person = await identities.finish(callback, checks);
      return typeof person === 'object' ? admit(person) : person;
    },
    async renew(refreshToken, subject, onReplaced) {
      const person = await identities.renew(refreshToken, subject, onReplaced);
      return person === undefined ? undefined : admit(person);
    },
    signOutUrl: (idToken) => identities.signOutUrl(idToken),
  };
}

/** The rules of the file, reloaded after it changes. An invalid file changes nothing. */
function watchedRules(
  file: string,
  read: (text: string) => SignInRules,
  onBadRules: (error: unknown) => void,
): () => SignInRules {
  let current = { stamp: stampOf(file), rules: read(textOf(file)) };
  return () => {
    try {
      const stamp = stampOf(file);
      if (stamp !== current.stamp) {
        // An invalid file too: it is reported once.
        current = { ...current, stamp };
        current = { stamp, rules: read(textOf(file)) };
      }
    } catch (error) {
      onBadRules(error);
    }
    return current.rules;
  };
}

/** Differs between versions of the file. */
function stampOf(file: string): string {
  const { mtimeMs = 0, size = 0, ino = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${size} ${ino}`;
}

/** Bytes. */
export const maxRulesBytes = 1024 * 1024;

/** Regular files only: reading a pipe would block the process. */
function textOf(file: string): string {
  try {
    const status = statSync(file);
    if (!status.isFile()) throw new OperatorError('ANNALS_OIDC_RULES names something other than a file');
    if (status.size > maxRulesBytes) throw new OperatorError('the file of ANNALS_OIDC_RULES is longer than 1 MiB');
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError('the file of ANNALS_OIDC_RULES cannot be read', { cause: error });
  }
}

/** The first valid actor name of: name, e-mail address, subject. */
function nameOf({ claims, subject }: Person): string {
  const { name, email } = claims;
  return [name, email].find(mayBeName) ?? subject;
}

function mayBeName(text: unknown): text is string {
  if (typeof text !== 'string') return false;
  try {
    checkClientName(text);
    return true;
  } catch {
    return false;
  }
}
