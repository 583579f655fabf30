import type { ConsoleSession } from '@annals/client';
import { annals } from '../api/annals.ts';
import { allows, session } from '../api/session.ts';
import { ConfirmButton } from '../components/overlays.tsx';
import { Name } from '../components/text.tsx';
import { Time } from '../components/values.tsx';
import { ListPage, useList } from '../lists/list-page.tsx';
import { programText } from './program-text.ts';

/** Who is signed in to the console of the tenant. Who may, ends a session, or all of a person. */
export function SessionsView() {
  const list = useList({
    name: 'sessions',
    defaultSort: 'seenAt:DESC',
    read: (parameters, signal) => annals().sessions.list(parameters, { signal }),
  });
  return (
    <ListPage
      list={list}
      title="Sessions and people"
      lead="Who is signed in to the console of this tenant. A session ends after eight hours at most."
      example='name:"Jane Doe"'
      chips={[
        ['Accounts', 'by:account'],
        ['Links', 'by:link'],
        ['Client secrets', 'by:secret'],
      ]}
      noun="session"
      empty={{ icon: 'actor', title: 'There is no session', text: 'No one is signed in.' }}
      class="wraps"
      keyOf={({ id }) => id}
      columns={[
        {
          label: 'Who',
          sort: 'name',
          title: ({ subject, issuer }) => (subject === undefined ? undefined : `${subject} at ${issuer}`),
          cell: ({ id, name = '' }) => (
            <>
              <Name text={name} />
              {id === session.value?.id ? <span class="muted"> (this session)</span> : undefined}
            </>
          ),
        },
        {
          label: 'Browser',
          name: 'Browser',
          class: 'nowrap',
          title: ({ program }) => program,
          cell: ({ program }) => program && <Name text={programText(program)} />,
        },
        {
          label: 'Address',
          name: 'Address',
          class: 'nowrap',
          cell: ({ address }) => address && <Name text={address} />,
        },
        {
          label: 'Since',
          name: 'Since',
          sort: 'createdAt',
          class: 'nowrap',
          cell: ({ createdAt = '' }) => <Time at={createdAt} detail="minute" />,
        },
        {
          label: 'Last seen',
          name: 'Last seen',
          sort: 'seenAt',
          class: 'nowrap',
          cell: ({ seenAt = '' }) => <Time at={seenAt} detail="minute" />,
        },
        ...(allows('access.credential_manage')
          ? [
              {
                label: 'Actions',
                class: 'nowrap',
                cell: (shown: ConsoleSession) => <Ends of={shown} onEnd={list.reload} />,
              },
            ]
          : []),
      ]}
    />
  );
}

/** What else ends, and who may sign in again. */
const consequences: Readonly<Record<NonNullable<ConsoleSession['by']>, string>> = {
  account: 'Keys and clients that were made in it end. To keep the person out, change the rules of the sign-in.',
  link: 'Its link cannot be used again.',
  secret: 'Anyone with the secret of the client can sign in again.',
};

function Ends({ of, onEnd }: { readonly of: ConsoleSession; readonly onEnd: () => void }) {
  const { id, name = '', issuer, subject, by = 'account' } = of;
  return (
    <>
      <ConfirmButton
        kind="quiet"
        aria-label={`End the session of ${name}`}
        ask={{
          title: id === session.value?.id ? 'End this session of yours?' : 'End this session?',
          label: 'End it',
          run: async () => {
            await annals().sessions.end(id);
            onEnd();
          },
          body: (
            <p>
              <Name text={name} /> is signed out of it within five seconds. {consequences[by]}
            </p>
          ),
        }}
      >
        End
      </ConfirmButton>
      {issuer === undefined || subject === undefined ? undefined : (
        <ConfirmButton
          kind="quiet"
          aria-label={`End all sessions of ${name}`}
          ask={{
            title: 'End all sessions of this person?',
            label: 'End all',
            run: async () => {
              await annals().sessions.endAllOf({ issuer, subject });
              onEnd();
            },
            body: (
              <p>
                <Name text={name} /> is signed out of this tenant everywhere within five seconds. Keys and clients that
                they made here end. To keep the person out, change the rules of the sign-in.
              </p>
            ),
          }}
        >
          End all
        </ConfirmButton>
      )}
    </>
  );
}
