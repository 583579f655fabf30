import type { Caller, Credentials, Restriction } from '../../http/credentials.ts';
import type { Scope } from '../../http/scopes.ts';
import type { Database, DatabaseTransaction } from '../../postgres/database.ts';

export interface SignedInClient {
  readonly tenant: string;
  readonly clientId: string;
  readonly name: string;
  readonly scopes: readonly Scope[];
  readonly revoked: boolean;
}

type ClientState = Pick<Credentials, 'restriction'> & { readonly name: string; readonly revoked: boolean };

/** What the console uses of the clients, which are another module's. */
export interface ConsoleClients {
  /** Rejects with an AccessTokenFault, and with rate_limit_exceeded (429) after too many wrong secrets. */
  checkSecret(client: { clientId: string; clientSecret: string; address: string }): Promise<SignedInClient>;
  /** As `checkSecret`, for a secret that serves once. `find` gives undefined where it is wrong. */
  checkOnce<Result>(address: string, find: () => Promise<Result | undefined>): Promise<Result>;
  find(db: Database, tenant: string, clientId: string): Promise<SignedInClient | undefined>;
  /** What is known of the client, 5 seconds old at most. */
  findState(tenant: string, clientId: string): ClientState | undefined | Promise<ClientState | undefined>;
  /** Deletes a client that a link has made. It has neither session nor link any more. */
  remove(db: Database, tenant: string, clientId: string): Promise<void>;
}

export type Person = NonNullable<Credentials['person']>;

interface NewKeyOfPerson extends Pick<Credentials, 'tenant' | 'clientId' | 'scopes'> {
  readonly name: string;
  readonly person: Person;
  /** Milliseconds. */
  readonly lifetime: number;
}

/** What the console uses of keys, which are another module's. A key is made by the client of a session, whose rights it has. */
export interface ConsoleKeys {
  /** Those that a key of somebody with these scopes can have. */
  scopesOf(scopes: readonly Scope[]): readonly Scope[];
  make(transaction: DatabaseTransaction, wanted: NewKeyOfPerson): Promise<object & { id: string }>;
  /** The good ones, the newest first. */
  list(db: Database, tenant: string, person: Person): Promise<readonly object[]>;
  /** False where none was good. `why`: it is not their maker's wish. */
  revoke(
    transaction: DatabaseTransaction,
    tenant: string,
    which: { keyId?: string; person?: Person | undefined; clientId?: string; why?: string },
  ): Promise<boolean>;
  /** When the last key ends that a client has made; undefined: it has none. */
  lastOf(db: Database, tenant: string, clientId: string): Promise<Date | undefined>;
}

/** Of what a restriction shows the whole, so that the page asks for nothing that would be refused. */
export type WholesOf = (restriction: Restriction) => string;

/** Whether the history of the tenant has a checkpoint, so that the page asks for no proof where there is none. */
export type IsSealed = (tenant: string) => Promise<boolean>;

/** What the console tells of, to whoever lists the accesses of a tenant, which is another module's. */
interface ConsoleAccessEvent extends Pick<Credentials, 'tenant' | 'clientId' | 'person'> {
  readonly kind: 'signed_in' | 'signed_out' | 'refused';
  readonly details?: Readonly<Record<string, string>>;
  readonly caller?: Caller | undefined;
  readonly session?: string;
}

/** Writes the event in the transaction of what it tells of. */
export type NoteConsoleAccess = (transaction: DatabaseTransaction, event: ConsoleAccessEvent) => Promise<void>;
