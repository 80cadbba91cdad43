/** Items of OpenAI's Responses API as messages of blocks. */

import { blocksOf, isObject, type Json, objects, pick } from '../json.js';
import { argumentsOf } from './form.js';

/** Fields of items that are the same in an answer and when an agent sends it back. */
const KEPT: Record<string, string[]> = {
  message: ['role', 'content'],
  reasoning: ['id', 'summary', 'encrypted_content'],
  function_call: ['call_id', 'name', 'arguments'],
  function_call_output: ['call_id', 'output'],
  custom_tool_call: ['call_id', 'name', 'input'],
  custom_tool_call_output: ['call_id', 'output'],
  agent_message: ['author', 'recipient', 'content'],
};
/** Items of tools that the provider runs, as our server renders them. */
const BY_PROVIDER = new Set([
  'web_search_call',
  'file_search_call',
  'image_generation_call',
  'code_interpreter_call',
]);
/** Fields that have no place in a block. */
const BESIDE: Record<string, string[]> = {
  message: ['phase'],
  function_call: ['namespace'],
  custom_tool_call: ['type'],
  agent_message: ['type', 'author', 'recipient'],
};
const ROLES: Record<string, string> = {
  developer: 'system',
  system: 'system',
  assistant: 'assistant',
};

/** The items of a request's `input`, which may be a text. */
export function itemsOf(given: unknown): Json[] {
  return typeof given === 'string' ? [{ role: 'user', content: given }] : objects(given);
}

/** The type of an item; a message may leave it out. */
export function typeOf(item: Json): string {
  return String(item.type ?? 'message');
}

/** Whether our server knows items of a type. */
export function isKnown(type: string): boolean {
  return type in KEPT || BY_PROVIDER.has(type);
}

/** An item without what only answers have, or only requests. */
function kept(item: Json): Json {
  const type = typeOf(item);
  const made = pick(item, KEPT[type] ?? Object.keys(item));
  if (type === 'message' && Array.isArray(made.content))
    made.content = objects(made.content).map(sent);
  return { ...made, type };
}

/** An item as a message of blocks; null if we do not know its type. */
export function messageOf(item: Json): Json | null {
  const type = typeOf(item);
  const said = saidIn(item, type);
  if (!said) return null;
  const [first = { type: 'text', text: '' }, ...rest] = said.content;
  const more = pick(item, BESIDE[type] ?? []);
  const content = [Object.keys(more).length ? { ...first, item: more } : first, ...rest];
  return { role: said.role, content };
}

function saidIn(item: Json, type: string): { role: string; content: Json[] } | null {
  const given = kept(item);
  if (type === 'message')
    return { role: ROLES[String(item.role)] ?? 'user', content: parts(given.content) };
  if (type === 'agent_message') return { role: 'user', content: parts(given.content) };
  if (type === 'reasoning') {
    const thinking = objects(given.summary)
      .map((part) => part.text ?? '')
      .join('\n\n');
    return { role: 'assistant', content: [{ ...given, type: 'thinking', thinking }] };
  }
  if (type === 'function_call' || type === 'custom_tool_call')
    return { role: 'assistant', content: [callOf(given)] };
  if (type in KEPT) {
    const content = typeof given.output === 'string' ? given.output : parts(given.output);
    const tool_use_id = String(given.call_id ?? '');
    return { role: 'user', content: [{ type: 'tool_result', tool_use_id, content }] };
  }
  return BY_PROVIDER.has(type) ? { role: 'assistant', content: [given] } : null;
}

function callOf(given: Json): Json {
  const isCustom = given.type === 'custom_tool_call';
  const input = isCustom ? { input: given.input } : argumentsOf(given.arguments);
  const known = { id: String(given.call_id ?? ''), name: String(given.name ?? '') };
  return { type: 'tool_use', ...known, input };
}

function parts(content: unknown): Json[] {
  return blocksOf(content).map((one) => {
    const part = sent(one);
    if (part.type === 'input_text' || part.type === 'output_text')
      return { type: 'text', text: String(part.text ?? '') };
    if (part.type === 'input_image')
      return { type: 'image', source: { type: 'url', url: part.image_url } };
    return part;
  });
}

/** A part of a message without what only answers have. */
function sent(part: Json): Json {
  const { type, file_id } = part;
  if (type === 'refusal') return { type: 'output_text', text: part.refusal };
  if (type === 'input_text' || type === 'output_text') return { type, text: part.text };
  if (type === 'input_image' && file_id)
    return { type: 'image', source: { type: 'file', file_id } };
  if (type !== 'input_file') return part;
  if (part.file_data) return { type: 'document', title: part.filename, file: part };
  const source = file_id ? { type: 'file', file_id } : { type: 'url', url: part.file_url };
  return { type: 'document', source };
}

/** Whether a tool has credentials, which must not be stored. */
export function hasCredentials(tool: Json): boolean {
  return 'authorization' in tool || 'headers' in tool;
}

/** What says that the provider keeps the history. */
export function storedBy(request: Json): string {
  const named = ['previous_response_id', 'conversation'].find((name) => request[name]);
  const refers = itemsOf(request.input).some((item) => typeOf(item) === 'item_reference');
  return named ?? (refers ? 'item_reference' : '');
}

/** The text of an item's parts. */
export function textOf(item: unknown): string {
  const content = isObject(item) ? objects(item.content) : [];
  return content.map((part) => part.text ?? '').join('');
}
