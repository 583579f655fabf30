import { apiUrl } from '../api/connection.ts';
import { useRequest } from '../api/requests.ts';
import { sessionAnswer } from '../api/session.ts';
import { ConfirmButton } from '../components/overlays.tsx';
import { Card } from '../components/page.tsx';
import { Answer } from '../components/states.tsx';
import { DataTable } from '../components/table.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';

interface OwnGrant {
  readonly id: string;
  /** What the program calls itself. */
  readonly name: string;
  readonly redirectUri: string;
  readonly createdAt: string;
  readonly expiresAt: string;
}

const path = `${apiUrl}/session/grants`;

/** Programs that the person of the session has allowed to read the history. */
export function GrantsCard() {
  const grants = useRequest('own grants', async (signal): Promise<readonly OwnGrant[]> => {
    const answer = await sessionAnswer(path, { signal });
    return ((await answer.json()) as { grants: OwnGrant[] }).grants;
  });
  return (
    <Card title="Programs that you allowed" body="connect-card">
      <p>Programs that sign in need no key: they send you to a page of Annals, on which you allow them.</p>
      <Answer of={grants}>
        {(all) =>
          all.length === 0 ? (
            <p class="muted">You have allowed no program.</p>
          ) : (
            <DataTable
              label="Programs that you allowed"
              items={all}
              keyOf={({ id }) => id}
              columns={[
                { label: 'Program', cell: ({ name }) => <Name text={name} /> },
                { label: 'Answered to', cell: ({ redirectUri }) => <Name text={redirectUri} /> },
                { label: 'Until', class: 'nowrap', cell: ({ expiresAt }) => <Time at={expiresAt} /> },
                { label: '', class: 'nowrap', cell: (grant) => <EndOwn of={grant} onEnd={grants.reload} /> },
              ]}
            />
          )
        }
      </Answer>
    </Card>
  );
}

function EndOwn({ of: { id, name }, onEnd }: { readonly of: OwnGrant; readonly onEnd: () => void }) {
  return (
    <ConfirmButton
      kind="quiet"
      aria-label={`End ${name}`}
      ask={{
        title: 'End what this program may do?',
        label: 'End it',
        run: async () => {
          await sessionAnswer(`${path}/${id}`, { method: 'DELETE' });
          onEnd();
        },
        body: (
          <p>
            <Name text={name} /> reads nothing more for you within five seconds.
          </p>
        ),
      }}
    >
      End
    </ConfirmButton>
  );
}
