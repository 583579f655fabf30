import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { OperatorError } from '../../core/errors.ts';

/** The account of PostgreSQL if the service is root, since PostgreSQL refuses to run as root. */
export interface ServerUser {
  name: string;
  uid: number;
  gid: number;
}

const preferred = ['annals', 'postgres', '_postgres', 'nobody'];

/** True for root, where the server needs another account. */
export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** The first of the preferred accounts in the text of /etc/passwd. */
export function chooseServerUser(passwd: string): ServerUser | undefined {
  const users = parsePasswd(passwd).filter((user) => user.uid > 0);
  for (const name of preferred) {
    const user = users.find((candidate) => candidate.name === name);
    if (user !== undefined) return user;
  }
  return undefined;
}

/** The unprivileged account of this machine. */
export async function findServerUser(): Promise<ServerUser> {
  const user = chooseServerUser(await readFile('/etc/passwd', 'utf8').catch(() => ''));
  if (user !== undefined) return user;
  throw new OperatorError(
    `PostgreSQL does not run as root, and /etc/passwd has none of the accounts ${preferred.join(', ')}. ` +
      'Make one (useradd --system annals), run as another user, or set DATABASE_URL',
  );
}

/** The account with this user id. PostgreSQL needs it in /etc/passwd. */
export async function userWithId(uid: number): Promise<ServerUser | undefined> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  return parsePasswd(passwd).find((user) => user.uid === uid);
}

/** Runs a program as that user. Returns whether it ran and exited with 0. */
export function succeedsAs(user: ServerUser, program: string, args: string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { uid: user.uid, gid: user.gid, cwd: '/', stdio: 'ignore', env: {} });
    child.once('error', () => resolve(false));
    child.once('exit', (code) => resolve(code === 0));
  });
}

/** Whether that user can enter the folder, by trial: modes do not show ACLs and mounts. */
export function canEnter(user: ServerUser, folder: string): Promise<boolean> {
  return succeedsAs(user, '/bin/sh', ['-c', 'cd "$1"', 'sh', folder]);
}

function parsePasswd(passwd: string): ServerUser[] {
  return passwd
    .split('\n')
    .map((line) => line.split(':'))
    .filter((fields) => fields.length >= 4)
    .map(([name = '', , uid = '', gid = '']) => ({ name, uid: Number(uid), gid: Number(gid) }))
    .filter((user) => Number.isInteger(user.uid) && Number.isInteger(user.gid));
}
