import { ApiError } from '@annals/client';
import { type JsonObject, stringifyJson } from '@annals/client/json';
import { useState } from 'preact/hooks';
import { annals } from '../../api/annals.ts';
import { Button, useWork } from '../../components/buttons.tsx';
import { TextField } from '../../components/forms.tsx';
import { FailureBox } from '../../components/states.tsx';
import { contentToSave, editableText, readEditedObject, versionOf } from '../json-editor/document-text.ts';
import { JsonEditor, SchemaNote, useSchemaFaults } from '../json-editor/json-editor.tsx';
import { documentForSchema, templateOf } from './schema-view.ts';

interface InstanceEditorProps {
  readonly type: string;
  /** Undefined for a new one. */
  readonly id: string | undefined;
  readonly instance: JsonObject | undefined;
  readonly schema: JsonObject | undefined;
  readonly onDirty: (isDirty: boolean) => void;
  readonly onSaved: (id: string) => void;
  readonly onReload: () => void;
  readonly onCancel: () => void;
}

/** The document of an instance as JSON, checked against the schema of its type while one types. */
export function InstanceEditor({
  type,
  id,
  instance,
  schema,
  onDirty,
  onSaved,
  onReload,
  onCancel,
}: InstanceEditorProps) {
  // The version that was read first: what was changed since then must not be written over.
  const [read] = useState(instance);
  const [newId, setNewId] = useState('');
  const [text, setText] = useState(() =>
    read === undefined ? stringifyJson(templateOf(schema), 2) : editableText(read),
  );
  const { value: document, fault } = readEditedObject(text);
  const state = useSchemaFaults(
    schema === undefined ? undefined : stringifyJson(schema),
    document === undefined || schema === undefined
      ? undefined
      : documentForSchema(new Map([['id', id ?? newId], ...document]), schema),
  );
  const namesOther = document?.has('id') === true && document.get('id') !== (id ?? newId);

  const isReady = document !== undefined && !namesOther;
  const { isBusy, failure, forget, act } = useWork();
  const hasChanged = failure instanceof ApiError && failure.type === 'conflict_resource' && id !== undefined;
  return (
    <form
      class="form-grid"
      // An error of what was sent says nothing about what is written now. A conflict stays true.
      onInput={() => hasChanged || forget()}
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) void act(async () => onSaved(await saveInstance(document, { type, id, newId, read })));
      }}
    >
      <FailureBox error={failure} />
      {hasChanged ? (
        <p class="note">
          <span>
            Somebody else has changed this document since you opened it. Copy what you need from your text, then begin
            with the newest version.
          </span>
          <Button
            onClick={() => {
              onDirty(false);
              onCancel();
              onReload();
            }}
          >
            Show the newest
          </Button>
        </p>
      ) : undefined}
      {id === undefined ? (
        <TextField
          key="id"
          kind="code"
          label="Id"
          hint="Leave it empty, and Annals makes one."
          value={newId}
          onText={setNewId}
        />
      ) : undefined}
      <JsonEditor
        key="document"
        label="Document"
        text={text}
        fault={
          fault ??
          (namesOther
            ? 'The id of a document cannot be changed here. Remove this id, or restore the one above.'
            : undefined)
        }
        onText={(changed) => {
          setText(changed);
          onDirty(true);
        }}
      />
      <div aria-live="polite">
        {schema === undefined || fault !== undefined ? undefined : <SchemaNote state={state} />}
      </div>
      <div class="page-actions">
        <Button kind="primary" type="submit" disabled={isBusy || !isReady}>
          Save
        </Button>
        <Button onClick={onCancel}>Cancel</Button>
      </div>
    </form>
  );
}

interface Saving {
  readonly type: string;
  readonly id: string | undefined;
  readonly newId: string;
  readonly read: JsonObject | undefined;
}

async function saveInstance(document: JsonObject, { type, id, newId, read }: Saving): Promise<string> {
  const instances = annals().exact.instances(type);
  if (id === undefined) {
    const content = newId === '' ? document : contentToSave(document, { id: newId, version: undefined });
    return (await instances.create(content)).id;
  }
  await instances.put(id, contentToSave(document, { id, version: read === undefined ? undefined : versionOf(read) }));
  return id;
}
