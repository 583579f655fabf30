import { readFileSync, statSync } from 'node:fs';
import { OperatorError } from '../../core/operator-error.ts';
import type { ReadRestriction } from '../../http/restriction.ts';
import { checkClientName } from '../oauth/client-identity.ts';
import { type Checks, createIdentityProvider, type IdentityProvider, type Person } from './provider.ts';
import { type Admissions, readRules, type SignInRules } from './rules.ts';

/** Why nobody was signed in. Declined: by the person, or by the provider for them. */
export type SignInRefusal = 'not_admitted' | 'groups_left_out' | 'declined';

/** A person whom at least one tenant lets in. */
export interface AdmittedPerson {
  readonly issuer: string;
  readonly subject: string;
  /** What change entries show as actor. */
  readonly name: string;
  readonly refreshToken: string | undefined;
  /** As it was signed. */
  readonly idToken: string | undefined;
  /** When the sign-in ends where nobody can ask again; milliseconds since 1970. */
  readonly expiresAt: number;
  readonly admissions: Admissions;
}

/** People sign in with their company's account (contract 18). All of it rejects where the provider cannot be reached. */
export interface PeopleSignIn {
  begin: IdentityProvider['begin'];
  /** Undefined where the provider did not give this code, or gave it before. */
  finish(callback: URL, checks: Checks): Promise<AdmittedPerson | SignInRefusal | undefined>;
  /** Asks the provider and the rules again; undefined where the provider ended the sign-in. `onReplaced`: as for `IdentityProvider`. */
  renew(
    refreshToken: string,
    subject: string,
    onReplaced: (refreshToken: string) => void,
  ): Promise<AdmittedPerson | SignInRefusal | undefined>;
  signOutUrl: IdentityProvider['signOutUrl'];
}

export interface SignInSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly scopes: readonly string[];
  readonly rulesFile: string;
  readonly baseUrl: string;
}

/** Reads the rules, which throws an OperatorError where they are wrong. The provider is asked for nothing before somebody signs in. */
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

/** The rules of the file, read anew where it has changed. A file that was made wrong changes nothing. */
function watchedRules(
  file: string,
  read: (text: string) => SignInRules,
  onBadRules: (error: unknown) => void,
): () => SignInRules {
  let known = { stamp: stampOf(file), rules: read(textOf(file)) };
  return () => {
    try {
      const stamp = stampOf(file);
      if (stamp !== known.stamp) {
        // Also where it is wrong: it is told once.
        known = { ...known, stamp };
        known = { stamp, rules: read(textOf(file)) };
      }
    } catch (error) {
      onBadRules(error);
    }
    return known.rules;
  };
}

/** Differs between states of the file. */
function stampOf(file: string): string {
  const { mtimeMs = 0, size = 0, ino = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
  return `${mtimeMs} ${size} ${ino}`;
}

/** Bytes. */
export const maxRulesBytes = 1024 * 1024;

/** Nothing but a file: to read a pipe would hold the process. */
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

/** The first of the name, the e-mail address and the subject that may be an actor. */
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
