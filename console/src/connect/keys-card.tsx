import { useState } from 'preact/hooks';
import { apiUrl } from '../api/connection.ts';
import { useRequest } from '../api/requests.ts';
import { sessionAnswer } from '../api/session.ts';
import { Button, useWork } from '../components/buttons.tsx';
import { keyName, LastUse, RevokeButton } from '../components/credentials.tsx';
import { SelectField } from '../components/forms.tsx';
import { Card } from '../components/page.tsx';
import { Answer, FailureBox } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Time } from '../components/values.tsx';

const lifetimes = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
] as const;

/** The keys of the person who is signed in: the list, a new one, and revocation. */
export function KeysCard({ made, onMade }: { made: MadeKey | undefined; onMade: (key: MadeKey | undefined) => void }) {
  const keys = useRequest('own keys', listOwnKeys);
  const [days, setDays] = useState<(typeof lifetimes)[number][0]>('90');
  const { isBusy, failure, act } = useWork(keys.reload);
  const revoke = async ({ id }: OwnKey) => {
    await revokeOwnKey(id);
    if (made?.id === id) onMade(undefined);
    keys.reload();
  };
  return (
    <Card title="Your keys" body="connect-card">
      <p>
        A key sees what you see, and only reads the history. It ends when its days are over, and within five minutes
        after your company no longer lets you in.
      </p>
      <div class="connect-new">
        <SelectField label="Valid for" choices={lifetimes} value={days} onChoose={setDays} />
        <Button
          kind="primary"
          icon="plus"
          disabled={isBusy}
          onClick={() => void act(async () => onMade(await makeOwnKey(Number(days))))}
        >
          Make a key
        </Button>
      </div>
      <FailureBox error={failure} />
      <Answer of={keys}>
        {(all) =>
          all.length === 0 ? (
            <p class="muted">You have no key.</p>
          ) : (
            <DataTable
              label="Your keys"
              items={all}
              keyOf={({ id }) => id}
              columns={[
                { label: 'Key', class: 'nowrap', cell: ({ id }) => <code>{keyName(id)}</code> },
                { label: 'Made', class: 'nowrap', cell: ({ createdAt }) => <Time at={createdAt} /> },
                {
                  label: 'Last used',
                  class: 'nowrap',
                  cell: ({ usedAt, usedAddress }) => <LastUse at={usedAt} address={usedAddress} />,
                },
                { label: 'Ends', class: 'nowrap', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
                {
                  label: '',
                  cell: (key) => <RevokeButton noun="key" name={keyName(key.id)} run={() => revoke(key)} />,
                },
              ]}
            />
          )
        }
      </Answer>
    </Card>
  );
}

/** A key of the person who is signed in. */
interface OwnKey {
  readonly id: string;
  /** RFC 3339, like the times below. */
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly usedAt: string | null;
  readonly usedAddress?: string;
}

/** A key right after it was made: its text is shown this once. */
export interface MadeKey extends OwnKey {
  readonly key: string;
}

const url = `${apiUrl}/session/keys`;

async function listOwnKeys(signal: AbortSignal): Promise<readonly OwnKey[]> {
  const { keys } = (await (await sessionAnswer(url, { signal })).json()) as { keys: readonly OwnKey[] };
  return keys;
}

/** Makes a key that is good for so many days. */
async function makeOwnKey(days: number): Promise<MadeKey> {
  const answer = await sessionAnswer(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ scopes: ['changelog.changelog_read'], expiresIn: days * 86_400 }),
  });
  return (await answer.json()) as MadeKey;
}

async function revokeOwnKey(id: string): Promise<void> {
  await sessionAnswer(`${url}/${id}`, { method: 'DELETE' });
}
