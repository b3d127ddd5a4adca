"""Configuration: frozen dataclasses with bounds in their types, and the one loader that fills them.

``loader`` fills them from TOML, JSON, ``--set``, keyword arguments and files of third parties.
``bounds`` defines rules for values, and ``settings`` the base class. ``toml`` reads and writes
files, ``paths`` resolves relative paths, and ``unread`` refuses options that nothing reads.
"""

from __future__ import annotations

from interlingua.config.bounds import MANY as MANY
from interlingua.config.bounds import NEARLY_ONE as NEARLY_ONE
from interlingua.config.bounds import TINY as TINY
from interlingua.config.bounds import Above as Above
from interlingua.config.bounds import AtLeast as AtLeast
from interlingua.config.bounds import Between as Between
from interlingua.config.bounds import InsideFolder as InsideFolder
from interlingua.config.bounds import Longest as Longest
from interlingua.config.loader import ValueOrigin as ValueOrigin
from interlingua.config.loader import convert_to_type as convert_to_type
from interlingua.config.loader import from_mapping as from_mapping
from interlingua.config.loader import load_config as load_config
from interlingua.config.loader import shorten_value as shorten_value
from interlingua.config.paths import HUB_PREFIX as HUB_PREFIX
from interlingua.config.paths import FileText as FileText
from interlingua.config.paths import PathText as PathText
from interlingua.config.paths import with_absolute_paths as with_absolute_paths
from interlingua.config.settings import CheckedSettings as CheckedSettings
from interlingua.config.toml import apply_override as apply_override
from interlingua.config.toml import config_to_toml as config_to_toml
from interlingua.config.toml import load_toml as load_toml
from interlingua.config.toml import parse_toml as parse_toml
from interlingua.config.toml import to_mapping as to_mapping
from interlingua.config.unread import refuse_unread as refuse_unread
from interlingua.config.unread import refuse_without as refuse_without
from interlingua.config.unread import train_key_hint as train_key_hint
from interlingua.config.unread import train_key_hint_of as train_key_hint_of
